"""One figure of predicted returns: the quantile function and the density of every action."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quantail.agents.agent import Risk
from quantail.agents.returns import Returns
from quantail.errors import QuantailError
from quantail.risk import parse_risk
from quantail.viewing.scenes import TAUS, Array, densities
from quantail.viewing.style import colour, line_style, new_figure, styled, theme
from quantail.viewing.weights import crossing_note, draw_weights
from quantail.viewing.words import place_legend, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_OBSERVATIONS = 6  # in one figure


def draw_returns(
    returns: Returns,
    file: str | Path | None = None,
    *,
    names: Sequence[str] | None = None,
    risk: Risk = "cvar:0.1",
    dark: bool = False,
) -> Figure:
    """Draw `agent.returns(observation)`, one row per observation, and save it if `file` is given.

    Quantile functions are at the left, above the weight of each τ under `risk`; densities are at the
    right, above the means (circles) and the values under `risk` (diamonds). The best actions have thick
    lines. `dark` draws for a dark page.
    """
    measure = parse_risk(risk)
    distributions, means, values = returns.quantile(TAUS), returns.mean(), returns.value(measure)
    if distributions.ndim == 2:
        distributions, means, values = distributions[None], means[None], values[None]
    if len(distributions) > MAX_OBSERVATIONS:
        raise QuantailError(
            f"a figure takes up to {MAX_OBSERVATIONS} observations, not {len(distributions)}."
        )
    count = distributions.shape[2]
    labels = list(names) if names is not None else [f"action {number}" for number in range(count)]
    if len(labels) != count:
        raise QuantailError(f"names takes one for each of {count} actions, not {len(labels)}.")
    with styled(dark):
        figure = new_figure(8.0, 0.2 + 3.4 * len(distributions))
        grid = figure.subplots(
            2 * len(distributions), 2, squeeze=False, height_ratios=[5, 1] * len(distributions)
        )
        for row, (distribution, mean, value) in enumerate(
            zip(distributions, means, values, strict=True)
        ):
            (quantiles, density), (weights, marks) = grid[2 * row : 2 * row + 2]
            drawn = np.sort(distribution.astype(np.float64), axis=0)
            best = {int(mean.argmax()), int(value.argmax())}
            _draw_quantiles(quantiles, drawn, labels, best)
            draw_weights(weights, measure)
            weights.sharex(quantiles)
            _draw_densities(density, drawn, best)
            _draw_marks(marks, mean, value, measure.label)
            marks.sharex(density)
            title = (
                f"best by the mean (○): {labels[int(mean.argmax())]}; "
                f"by {measure.label} (◆): {labels[int(value.argmax())]}"
            )
            set_title(quantiles, title, 3.5)
        place_legend(figure, note=crossing_note(returns.crossing(TAUS)))
        if file is not None:
            figure.savefig(file, dpi=160)
    return figure


def _draw_quantiles(axes: Axes, distribution: Array, labels: Sequence[str], best: set[int]) -> None:
    for action, label in enumerate(labels):
        width = 2.2 if action in best else 1.1
        axes.plot(TAUS, distribution[:, action], **line_style(action), lw=width, label=label)
    axes.set(xlim=(0, 1), xticks=np.linspace(0, 1, 6))
    axes.tick_params(labelbottom=False)
    axes.set_ylabel("discounted return")


def _draw_densities(axes: Axes, distribution: Array, best: set[int]) -> None:
    low, high = float(distribution.min()), float(distribution.max())
    margin = 0.1 * max(high - low, 0.1)
    points = np.linspace(low - margin, high + margin, 240)
    heights = densities(distribution, points)
    for action in range(distribution.shape[1]):
        axes.plot(points, heights[:, action], **line_style(action), lw=2.2 if action in best else 1.1)
    axes.set(xlim=(points[0], points[-1]), ylim=(0, 1.05 * float(heights.max())))
    axes.tick_params(labelbottom=False)
    axes.set_ylabel("probability density")


def _draw_marks(axes: Axes, means: Array, values: Array, measure: str) -> None:
    """Draw the mean and the value of every action on the axis of returns, in a row each."""
    for action, (mean, value) in enumerate(zip(means, values, strict=True)):
        ink = colour(action)
        style: dict[str, Any] = {"ls": "none", "ms": 6, "mec": ink, "clip_on": False}
        axes.plot(mean, 1, marker="o", mfc=theme().ground, **style)
        axes.plot(value, 0, marker="D", mfc=ink, **style)
    axes.set(ylim=(-0.7, 1.7), yticks=[1, 0], xlabel="discounted return")
    axes.set_yticklabels(["mean", measure])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
