"""One figure of predicted returns: the quantile function and the density of every action."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quantail.agents.agent import Risk
from quantail.agents.returns import Returns
from quantail.errors import QuantailError
from quantail.risk import parse_risk
from quantail.viewing.scenes import TAUS, densities
from quantail.viewing.style import colour, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_OBSERVATIONS = 6  # in one figure


def draw_returns(
    returns: Returns,
    file: str | Path | None = None,
    *,
    names: Sequence[str] | None = None,
    risk: Risk = "cvar:0.1",
) -> Figure:
    """Draw `agent.returns(observation)`, one row per observation, and save it if `file` is given.

    Circles are means, and diamonds are values under `risk`; the best action under each is in bold.
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
    with styled():
        figure = new_figure(8.0, 0.6 + 2.6 * len(distributions))
        rows = figure.subplots(len(distributions), 2, squeeze=False)
        for (quantiles, density), distribution, mean, value in zip(
            rows, distributions, means, values, strict=True
        ):
            low, high = float(distribution.min()), float(distribution.max())
            margin = 0.1 * max(high - low, 0.1)
            grid = np.linspace(low - margin, high + margin, 240)
            heights = densities(distribution.astype(np.float64), grid)
            best = {int(mean.argmax()), int(value.argmax())}
            for action in range(count):
                style = {"color": colour(action), "lw": 2.0 if action in best else 1.0}
                quantiles.plot(TAUS, distribution[:, action], label=labels[action], **style)
                density.plot(grid, heights[:, action], **style)
                marks = {"color": colour(action), "clip_on": False, "ls": "none", "zorder": 4}
                floor = -0.06 * heights.max()
                for x, y, axes in ((1.05, None, quantiles), (None, floor, density)):
                    for shift, number, shape in ((0.0, mean, "o"), (0.06, value, "D")):
                        at = (x + shift, number[action]) if x else (number[action], y)
                        face = "white" if shape == "o" else colour(action)
                        axes.plot(*at, marker=shape, mfc=face, ms=5, **marks)
            quantiles.set(xlim=(0, 1.14), xlabel="quantile fraction τ", xticks=np.linspace(0, 1, 6))
            quantiles.set_ylabel("discounted return")
            density.set(xlabel="discounted return", yticks=[], ylim=(-0.12 * heights.max(), None))
            density.set_ylabel("density")
            quantiles.set_title(
                f"best by the mean (○): {labels[int(mean.argmax())]}, "
                f"by {measure.label} (◆): {labels[int(value.argmax())]}"
            )
        handles, texts = rows[0][0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=min(count, 6))
        if file is not None:
            figure.savefig(file, dpi=160)
    return figure
