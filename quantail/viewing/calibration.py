"""The figure of a calibration: good and bad look different at a glance."""

import numpy as np
from matplotlib.figure import Figure

from quantail.evaluation.calibration import BINS, LEVELS, Calibration
from quantail.viewing.style import colour, new_figure


def calibration_figure(calibration: Calibration) -> Figure:
    """Coverage against its level, where returns fall in their laws, and means beside returns."""
    figure = new_figure(9.5, 3.2)
    covered, ranks, means = figure.subplots(1, 3)
    low, high = calibration.coverage_interval()
    covered.plot([0, 1], [0, 1], color="0.6", lw=1, ls=":")
    covered.fill_between(LEVELS, low, high, color=colour(0), alpha=0.25, lw=0)
    covered.plot(LEVELS, calibration.coverage, color=colour(0), marker="o", ms=3)
    covered.set_xlabel("level τ of a predicted quantile")
    covered.set_ylabel("share of returns below it")
    covered.set_title("coverage: on the diagonal if true")
    covered.set_aspect("equal")

    shares = calibration.histogram() * BINS
    edges = np.linspace(0, 1, BINS + 1)
    ranks.bar(edges[:-1], shares, width=1 / BINS, align="edge", color=colour(0), alpha=0.75)
    ranks.axhline(1, color="0.6", lw=1, ls=":")
    ranks.set_xlabel("where the return falls in its law")
    ranks.set_ylabel("share beside that of a true law")
    ranks.set_title("ranks: flat if true")

    predicted = np.concatenate([trail.laws.mean(axis=1) for trail in calibration.trails])
    came = np.concatenate([trail.returns for trail in calibration.trails])
    shown = np.random.default_rng(0).permutation(len(came))[:1_500]
    means.scatter(predicted[shown], came[shown], s=4, alpha=0.25, color=colour(0), lw=0)
    ends = [min(predicted.min(), came.min()), max(predicted.max(), came.max())]
    means.plot(ends, ends, color="0.6", lw=1, ls=":")
    means.set_xlabel("predicted mean")
    means.set_ylabel("return that came")
    means.set_title(f"bias of the mean {calibration.bias:.3g}")
    figure.suptitle(f"{calibration.env}: {calibration.verdict()}", fontsize=10, x=0.01, ha="left")
    return figure
