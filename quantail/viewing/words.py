"""Text in figures: wrapped titles and legends that never lie over a plot, and labels that keep apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quantail.viewing.style import LINE_HEIGHT, RULES, SIZE, SMALL, theme

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

MARGIN = 0.3  # inches of a figure's width that text leaves free


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of one line of text, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) / 72


def wrapped(text: str, width: float, size: float = SIZE, *, bold: bool = False) -> str:
    """Break lines that are wider than `width` inches, at a space if possible, else after / _ , or -."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for part in (piece for word in _words(paragraph) for piece in _pieces(word, width, size)):
            if line.strip() and text_width((line + part).rstrip(), size, bold=bold) > width:
                lines.append(line.rstrip())
                line = ""
            line += part
        lines.append(line.rstrip())
    return "\n".join(lines)


def _words(text: str) -> list[str]:
    return re.findall(r"\S+(?: %)?\s*", text)


def _pieces(word: str, width: float, size: float) -> list[str]:
    """Return a word, or its parts if it is too wide for a line of its own."""
    if text_width(word, size) <= width:
        return [word]
    return re.findall(r"[^/_,-]{1,20}[/_,-]?\s*|[/_,-]\s*", word)


def set_heading(figure: Figure, title: str, note: str = "", *, right: float = 0.0) -> None:
    """Set the title of a figure, and a note in a second line; the figure grows by their height.

    The first line leaves `right` inches free at its end.
    """
    width = float(figure.get_figwidth()) - MARGIN
    text = wrapped(title, width - right) + (f"\n{wrapped(note, width)}" if note else "")
    figure.suptitle(text, fontsize=SIZE, ha="left", x=0.1 / float(figure.get_figwidth()))
    _grow(figure, text.count("\n") + 1, SIZE)


def set_title(axes: Axes, text: str, width: float) -> None:
    """Set the title of a panel whose width is about `width` inches."""
    axes.set_title(wrapped(text, width), parse_math=False)


def place_legend(
    figure: Figure,
    handles: Sequence[Artist] | None = None,
    *,
    note: str = "",
    columns: int = 6,
) -> Legend | None:
    """Put a legend below all plots, with as many columns as fit, up to `columns`; wrap long labels.

    Without `handles` it has every labelled series, equal labels once. `note` is a sentence above the
    entries. The figure grows by the height of the legend.
    """
    if handles is None:
        found: dict[str, Artist] = {}
        for axes in figure.axes:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                found.setdefault(label, handle)
        handles = list(found.values())
    handle_width = (RULES["legend.handlelength"] + RULES["legend.handletextpad"]) * SMALL / 72
    whole = float(figure.get_figwidth()) - MARGIN
    labels = [wrapped(str(one.get_label()), whole - handle_width, SMALL) for one in handles]
    note = wrapped(note, whole, SMALL)
    if not handles and not note:
        return None
    widths = [handle_width + max(text_width(line, SMALL) for line in t.split("\n")) for t in labels]
    count = next((n for n in range(min(columns, len(widths)), 1, -1) if _total(widths, n) <= whole), 1)
    if labels:
        count = -(-len(labels) // -(-len(labels) // count))  # rows of about the same length
    legend = figure.legend(
        list(handles), labels, loc="outside lower center", ncols=count, title=note or None
    )
    legend.set_alignment("left")
    for text in legend.get_texts():
        text.set_parse_math(False)
    legend.get_title().set_color(theme().quiet)
    rows = [sum(t.count("\n") + 1 for t in column) for column in _split(labels, count)]
    _grow(figure, max(rows, default=0) + (note.count("\n") + 1 if note else 0), SMALL)
    return legend


def _split(entries: Sequence[Any], columns: int) -> list[list[Any]]:
    """Divide entries among columns as a legend does."""
    return [list(one) for one in np.array_split(np.array(entries, dtype=object), columns)]


def _total(widths: Sequence[float], columns: int) -> float:
    """Return the width of a legend with this number of columns."""
    spacing = RULES["legend.columnspacing"] * SMALL / 72
    return float(sum(max(column) for column in _split(widths, columns)) + spacing * (columns - 1))


def _grow(figure: Figure, lines: int, size: float) -> None:
    figure.set_figheight(float(figure.get_figheight()) + lines * size * LINE_HEIGHT / 72)


def spread_labels(values: ArrayLike, gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Return positions close to `values` that are at least `gap` apart, within the range if they fit.

    A label is `gap` high, so its centre keeps half of that from the ends of the range.
    """
    wanted = np.asarray(values, np.float64)
    order = np.argsort(wanted, kind="stable")
    places = wanted[order]
    if not places.size:
        return places
    steps = np.arange(len(places)) * gap
    # Isotonic regression: the increasing sequence nearest to `places - steps`, by pooling blocks.
    blocks: list[tuple[float, int]] = []
    for target in places - steps:
        mean, count = float(target), 1
        while blocks and blocks[-1][0] > mean:
            before, size = blocks.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        blocks.append((mean, count))
    base = np.concatenate([np.full(count, mean) for mean, count in blocks])
    base = np.clip(base, low + gap / 2, max(high - gap / 2 - steps[-1], low + gap / 2))
    result = np.empty(len(places))
    result[order] = base + steps
    return result
