"""What the figures of docs/ideas share: colours, saving, and the example that most of them draw."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from quantail.distributions import ReturnDistribution
from quantail.envs.worlds import WORLDS
from quantail.envs.worlds.exact import follow
from quantail.viewing.style import RULES

Array = NDArray[np.float64]
WIDTH = 5.2  # inches: 374 points, so that text of 10 points can be read on a phone
SMALL = 9


@dataclass(frozen=True)
class Palette:
    """The colours of a figure on light or on dark pages."""

    ground: str
    ink: str
    quiet: str
    line: str
    shade: str
    series: tuple[str, ...]


LIGHT = Palette(
    "#ffffff", "#1b1f27", "#5c6573", "#c3cad3", "#dbe7f3",
    ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
)  # fmt: skip
DARK = Palette(
    "#14171c", "#e9ecf1", "#a3acba", "#4a525e", "#26384d",
    ("#3eb4ff", "#e0590b", "#109a68", "#c48fb6", "#f8b93a", "#bddbfe"),
)  # fmt: skip


@contextmanager
def drawing(height: float, dark: bool, folder: Path, name: str) -> Iterator[tuple[Figure, Palette]]:
    """Hand out an empty figure in the style of the docs, and save it as SVG afterwards."""
    colours = DARK if dark else LIGHT
    rules: dict[Any, Any] = RULES | {
        "axes.edgecolor": colours.quiet,
        "axes.facecolor": colours.ground,
        "axes.labelcolor": colours.ink,
        "axes.linewidth": 0.8,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": colours.ink,
        "figure.facecolor": colours.ground,
        "font.size": 10,
        "legend.fontsize": SMALL,
        "legend.labelcolor": colours.ink,
        "savefig.facecolor": colours.ground,
        "text.color": colours.ink,
        "xtick.color": colours.quiet,
        "xtick.labelcolor": colours.ink,
        "xtick.labelsize": SMALL,
        "ytick.color": colours.quiet,
        "ytick.labelcolor": colours.ink,
        "ytick.labelsize": SMALL,
    }
    with mpl.rc_context(rules):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure, colours
        stem = f"{name}-dark" if dark else name
        figure.savefig(folder / f"{stem}.svg", metadata={"Date": None})


@cache
def gambles() -> ReturnDistribution:
    """Return the distribution of gambling in all five steps of the chain, without discounting."""
    world = WORLDS["Quantail/Chain-v0"]()
    every = follow(world, dict.fromkeys(world.states, 1), 1.0)
    return every.distribution(world.states[0])


def steps(z: ReturnDistribution) -> tuple[Array, Array]:
    """Return the corners of the quantile function: τ and the return."""
    atoms, cumulated = (part.numpy() for part in z.sorted())
    edges = np.concatenate([[0.0], cumulated])
    return np.repeat(edges, 2)[1:-1], np.repeat(atoms, 2)


def quantile_plot(axes: Axes, z: ReturnDistribution, **style: Any) -> None:
    """Draw the quantile function, return against τ."""
    axes.plot(*steps(z), **style)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "¼", "½", "¾", "1"])


def bars(axes: Axes, z: ReturnDistribution, **style: Any) -> None:
    """Draw the probability of every return."""
    axes.vlines(z.atoms.numpy(), 0, z.probabilities().numpy(), **style)
    axes.set_ylim(0)
