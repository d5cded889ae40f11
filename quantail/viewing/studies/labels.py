"""Lines, titles and labels that the figures of a study share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quantail.experiments.results import Results
from quantail.experiments.study import Axis, Combination
from quantail.text import counted
from quantail.viewing.style import DASHES, SMALL, line_style, theme
from quantail.viewing.words import set_heading, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SYMBOLS = {
    "online_samples": "N, online samples of τ",
    "target_samples": "N′, target samples of τ",
    "embedding": "embedding of τ",
    "embedding_size": "size of the embedding",
    "embedding_activation": "nonlinearity",
    "merge": "merge with the features",
    "policy_samples": "K, policy samples of τ",
}


def style_of(index: int, config: Combination) -> dict[str, Any]:
    """Return the colour and the dashes of a combination; references are grey and never solid."""
    if config.reference:
        return {"color": theme().quiet, "ls": DASHES[1 + index % (len(DASHES) - 1)]}
    return line_style(index)


def set_study_heading(figure: Figure, results: Results, note: str) -> None:
    """Set the title and a note; if results are partial, say so in red at the right."""
    partial = results.partial.upper()
    set_heading(figure, results.study.title, note, right=text_width(partial, SMALL) + 0.2)
    if partial:
        figure.text(
            0.99,
            0.99,
            partial,
            color=theme().warning,
            fontsize=SMALL,
            ha="right",
            va="top",
        )


def games_and_seeds(results: Results) -> str:
    """Return the games and the number of seeds of a study, for the title of a figure."""
    games = ", ".join(game_name(env) for env in results.study.games[:6])
    more = f" and {len(results.study.games) - 6} more" if len(results.study.games) > 6 else ""
    counts = sorted({one.seeds for one in results.configs})
    seeds = counted(counts[0], "seed") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    return f"{games}{more}; {seeds}"


def game_name(env: str) -> str:
    """Return the name of a game without its family and version."""
    return env.rpartition("/")[2].rpartition("-v")[0] or env


def axis_label(axis: Axis) -> str:
    """Return the label of an axis of the grid, with the paper's symbol if it has one."""
    return SYMBOLS.get(axis.name, axis.name.replace("_", " "))


def label_at_right(axes: Axes, text: str, value: float) -> None:
    """Write a label above a horizontal line, at its right end."""
    axes.annotate(
        text,
        (1, value),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        color=theme().quiet,
        fontsize=8,
    )
