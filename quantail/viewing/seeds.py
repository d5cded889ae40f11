"""Curves over several seeds: the mean, and from two seeds on its confidence interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quantail.evaluation.intervals import CONFIDENCE, mean_intervals
from quantail.viewing.style import theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
INTERVAL_NOTE = (
    f"The shaded band is the {100 * CONFIDENCE:g} % interval of the mean, by bootstrap over seeds."
)


def draw_mean(axes: Axes, steps: Array, values: Array, **style: Any) -> None:
    """Draw the mean over seeds and, from two seeds on, its interval; `values` is [seeds, points]."""
    axes.plot(steps, values.mean(axis=0), **style)
    draw_interval(axes, steps, values, style["color"])


def draw_interval(axes: Axes, steps: Array, values: Array, colour: str) -> None:
    """Shade the interval of the mean over two or more seeds; a single seed has none."""
    if len(values) > 1 and len(steps):
        low, high = mean_intervals(values)
        axes.fill_between(steps, low, high, color=colour, alpha=0.2, lw=0)


def draw_random(axes: Axes, value: float) -> None:
    """Draw the score of random play as a dotted line, with an entry in the legend."""
    if np.isfinite(value):
        axes.axhline(value, color=theme().quiet, ls=":", lw=1, label="random play")
