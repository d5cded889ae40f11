"""The strip below a plot of quantile functions that shows the weight of every τ under a risk measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quantail.risk import RiskMeasure
from quantail.viewing.scenes import TAUS, tau_weights
from quantail.viewing.style import SMALL, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

XLABEL = "quantile fraction τ"


def draw_weights(axes: Axes, risk: RiskMeasure) -> None:
    """Draw the weight of each τ under a risk measure: 1 everywhere for the mean.

    A measure that is not a distortion of τ, such as entropic risk, has no weights: the strip says so.
    """
    weights = tau_weights(risk)
    axes.set_xlabel(XLABEL)
    if weights is None:
        words = f"{risk.label} does not weight τ"
        axes.text(0.5, 0.5, words, ha="center", va="center", color=theme().quiet, fontsize=SMALL)
        axes.set(ylim=(0, 1), yticks=[])
        return
    edges = np.linspace(0, 1, len(TAUS) + 1)
    axes.stairs(weights, edges, fill=True, color=theme().shade)
    axes.stairs(weights, edges, color=theme().quiet, lw=1)
    most = float(weights.max())
    axes.set(ylim=(0, 1.15 * most), yticks=[0, most])
    axes.set_yticklabels(["0", f"{most:.3g}"])
    axes.set_ylabel("weight\nof τ")


def crossing_note(crossing: float | None) -> str:
    """Return a sentence on quantiles that crossed before they were sorted; empty if none did."""
    if not crossing:
        return ""
    share = "less than 1 %" if crossing < 0.005 else f"{100 * crossing:.0f} %"
    return f"Curves are sorted: {share} of neighbouring quantiles crossed."
