"""The style of all figures: colours, sizes and axes that suit a paper."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quantail.extras import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
RULES: dict[Any, Any] = {
    "font.size": 10,  # for a figure 374 points wide, about the width of a narrow phone in pixels
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 11,
    "legend.handlelength": 1.2,
    "legend.columnspacing": 1.2,
    "svg.hashsalt": "quantail",
}


def ink_on(ground: str) -> str:
    """Return black or white, whichever has more contrast on this background colour."""
    parts = [int(ground[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if luminance > 0.179 else "white"


def colour(index: int) -> str:
    """Return the colour of the index-th series in a figure."""
    return COLOURS[index % len(COLOURS)]


@contextmanager
def styled() -> Iterator[None]:
    """Apply the style to everything that is drawn and saved in this context."""
    require_extra("plots", "a figure")
    import matplotlib as mpl

    with mpl.rc_context(RULES):
        yield


def new_figure(width: float = 5.2, height: float = 3.2) -> Figure:
    """Create a figure; the default size in inches fits a column of text and a phone."""
    require_extra("plots", "a figure")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def count_axis(axes: Axes, frames_per_step: int) -> None:
    """Label the x axis with steps, and with frames above if they differ."""
    from matplotlib.ticker import EngFormatter

    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if frames_per_step == 1:
        axes.set_xlabel("steps (1 step = 1 frame)")
        return
    axes.set_xlabel("steps (decisions of the agent)")

    def to_frames(steps: Any) -> Any:
        return steps * frames_per_step

    def to_steps(frames: Any) -> Any:
        return frames / frames_per_step

    frames = axes.secondary_xaxis("top", functions=(to_frames, to_steps))
    frames.xaxis.set_major_formatter(EngFormatter(sep=""))
    frames.set_xlabel("frames")


def svg_of(figure: Figure) -> bytes:
    """Return the figure as SVG; equal figures give equal bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def save_figure(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Save a figure as PNG and SVG, and return both paths; `stem` may end in .png or .svg."""
    name = stem.stem if stem.suffix.lower() in (".png", ".svg") else stem.name
    png, svg = stem.with_name(f"{name}.png"), stem.with_name(f"{name}.svg")
    figure.savefig(png, dpi=200)
    svg.write_bytes(svg_of(figure))
    return png, svg


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
