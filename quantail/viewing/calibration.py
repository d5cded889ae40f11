"""The figure of a calibration: good and bad look different at a glance."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from quantail.evaluation.calibration import Calibration
from quantail.evaluation.calibration.ranks import LEVELS
from quantail.evaluation.calibration.result import BINS
from quantail.viewing.style import colour, new_figure

COLOURS = {"true": colour(0), "close": colour(0), "wrong": colour(1), "unknown": "0.45"}
ROOM = 10  # grains from end to end of the means' axes, at least
DOTS = 1_500


def calibration_figure(calibration: Calibration) -> Figure:
    """Coverage against its level, where returns fall in their laws, and means beside returns.

    Blue where the laws are true or close, orange where they are wrong, grey where it is not known.
    """
    figure = new_figure(9.5, 3.2)
    verdict = calibration.judgement()
    shade = COLOURS[verdict.kind]
    covered, ranks, means = figure.subplots(1, 3)
    _coverage(covered, calibration, shade)
    _ranks(ranks, calibration, shade)
    _means(means, calibration, shade)
    figure.suptitle(
        f"{calibration.title()}: {verdict.words}",
        fontsize=10,
        x=0.01,
        ha="left",
        color=shade,
        fontweight="bold",
    )
    return figure


def _coverage(axes: Axes, calibration: Calibration, shade: str) -> None:
    low, high = calibration.coverage_interval()
    axes.plot([0, 1], [0, 1], color="0.6", lw=1, ls=":")
    axes.fill_between(LEVELS, low, high, color=shade, alpha=0.25, lw=0)
    axes.plot(LEVELS, calibration.coverage, color=shade, marker="o", ms=3)
    axes.set_xlabel("level τ of a predicted quantile")
    axes.set_ylabel("share of returns below it")
    axes.set_title("coverage: on the diagonal if true")
    axes.set_aspect("equal")


def _ranks(axes: Axes, calibration: Calibration, shade: str) -> None:
    often = calibration.histogram() * BINS
    edges = np.linspace(0, 1, BINS + 1)
    axes.bar(edges[:-1], often, width=1 / BINS, align="edge", color=shade, alpha=0.75)
    axes.axhline(1, color="0.6", lw=1, ls=":")
    axes.set_ylim(0, max(3.0, 1.05 * float(often.max())))
    axes.set_xlabel("where the return falls in its law")
    axes.set_ylabel("how often (1 = as it should be)")
    axes.set_title("ranks: flat if true")


def _means(axes: Axes, calibration: Calibration, shade: str) -> None:
    predicted, came = calibration.means, calibration.returns
    shown = np.random.default_rng(0).permutation(len(came))[:DOTS]
    least, most = min(predicted.min(), came.min()), max(predicted.max(), came.max())
    half = 0.55 * max(most - least, ROOM * calibration.grain)
    ends = [(least + most) / 2 - half, (least + most) / 2 + half]
    axes.plot(ends, ends, color="0.6", lw=1, ls=":")
    axes.scatter(predicted[shown], came[shown], s=5, alpha=0.3, color=shade, lw=0)
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)
    axes.set_xlabel("predicted mean")
    axes.set_ylabel("return that came")
    axes.set_title(f"bias of the mean {calibration.bias:.3g}")
