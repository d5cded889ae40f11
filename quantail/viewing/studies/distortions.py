"""One return distribution under the risk measures of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from quantail.experiments.results import Array, Results
from quantail.risk import RiskMeasure, parse_risk
from quantail.viewing.style import colour, new_figure, theme
from quantail.viewing.words import set_heading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_MEASURES = ("norm:3",)  # drawn in the paper's figure of distortions, but not used for a policy


def distortions(measures: Sequence[RiskMeasure]) -> Figure:
    """Draw an example distribution, and its distortion under each risk measure."""
    from matplotlib.ticker import MaxNLocator

    wide = min(4, len(measures))
    tall = -(-len(measures) // wide)
    figure = new_figure(2.4 * wide, 1.8 * tall + 0.1)
    panels = figure.subplots(tall, wide, sharex=True, squeeze=False)
    returns, base, cdf = _example()
    weights = [measure.tau_weights(torch.from_numpy(cdf)) for measure in measures]
    measures = [one for one, found in zip(measures, weights, strict=True) if found is not None]
    distorted = [np.cumsum([0.0, *found.tolist()]) for found in weights if found is not None]
    densities = [np.gradient(one, returns) for one in distorted]
    for index, (measure, density) in enumerate(zip(measures, densities, strict=True)):
        axes = panels[index // wide, index % wide]
        axes.fill_between(returns, base, color=theme().line, lw=0)
        mean = float(np.trapezoid(returns * density, returns) / np.trapezoid(density, returns))
        axes.fill_between(returns, density, color=colour(index), alpha=0.15, lw=0)
        axes.plot(returns, density, color=colour(index), lw=1.3)
        axes.axvline(mean, color=colour(index), lw=1, ls="--")
        axes.set_title(f"{measure.label}: mean {mean:.1f}")
        axes.yaxis.set_major_locator(MaxNLocator(3))
        if index % wide == 0:
            axes.set_ylabel("density")
        # Each panel has its own height: a sharp measure such as CVaR(0.1) would flatten all others.
        axes.set_ylim(0, 1.05 * max(float(density.max()), float(base.max())))
        if index + wide >= len(measures):
            axes.set_xlabel("return")
            axes.tick_params(labelbottom=True)
    for index in range(len(measures), wide * tall):
        panels[index // wide, index % wide].set_axis_off()
    set_heading(
        figure,
        "One return distribution under different risk measures",
        "Grey: the distribution itself, the same in all panels. Line: the distribution under the risk "
        "measure. Dashed: its mean. Each panel has its own scale of density.",
    )
    return figure


def _example() -> tuple[Array, Array, Array]:
    """Return a mixture of two Gaussians on a grid: returns, density, CDF."""
    returns = np.linspace(-2.0, 16.0, 601)
    components = ((0.65, 4.0, 1.4), (0.35, 9.5, 1.6))
    density = sum(
        share * np.exp(-(((returns - centre) / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi))
        for share, centre, spread in components
    )
    cdf = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(returns))])
    return returns, np.asarray(density), np.clip(cdf / cdf[-1], 0.0, 1.0)


def measures_of(results: Results) -> list[RiskMeasure]:
    """Return the measures on the study's axis `risk`, and those that the paper draws in addition."""
    axis = next((one for one in results.study.grid if one.name == "risk"), None)
    if axis is None:
        return []
    names = [str(one.settings.get("risk", "neutral")) for one in axis.variants]
    return [parse_risk(name, results.study.origin) for name in dict.fromkeys([*names, *PAPER_MEASURES])]
