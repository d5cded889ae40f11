"""The figure of a calibration; its colour shows the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quantail.evaluation.calibration import Calibration
from quantail.evaluation.calibration.ranks import COVERAGE_TAUS
from quantail.evaluation.calibration.result import BINS
from quantail.viewing.style import LINE_HEIGHT, SIZE, colour, new_figure, theme
from quantail.viewing.words import wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

SERIES = {"true": 0, "close": 0, "wrong": 1}  # colours by verdict
WIDTH, HEIGHT = 9.5, 3.2  # inches
MIN_SPAN = 10  # least width of the axes of the means, in tolerances
MAX_DOTS = 1_500


def calibration_figure(calibration: Calibration) -> Figure:
    """Draw the coverage against τ, the histogram of the ranks, and the returns against predicted means.

    The figure is blue if the distributions are correct or close, orange if they are wrong, and grey if
    there are too few episodes for a verdict.
    """
    figure = new_figure(WIDTH, HEIGHT)
    lines = draw_calibration(figure, calibration)
    figure.set_figheight(HEIGHT + (lines - 1) * SIZE * LINE_HEIGHT / 72)
    return figure


def draw_calibration(figure: Figure | SubFigure, calibration: Calibration) -> int:
    """Draw the three panels and the verdict; return the number of lines that the verdict takes."""
    verdict = calibration.judgement()
    ink = colour(SERIES[verdict.kind]) if verdict.kind in SERIES else theme().quiet
    covered, ranks, means = figure.subplots(1, 3)
    _coverage(covered, calibration, ink)
    _ranks(ranks, calibration, ink)
    _means(means, calibration, ink)
    text = wrapped(f"{calibration.title()}: {verdict.words}", WIDTH - 0.3, bold=True)
    figure.suptitle(text, fontsize=SIZE, x=0.01, ha="left", color=ink, fontweight="bold")
    return text.count("\n") + 1


def _coverage(axes: Axes, calibration: Calibration, ink: str) -> None:
    low, high = calibration.coverage_interval()
    axes.plot([0, 1], [0, 1], color=theme().quiet, lw=1, ls=":")
    axes.fill_between(COVERAGE_TAUS, low, high, color=ink, alpha=0.25, lw=0)
    axes.plot(COVERAGE_TAUS, calibration.coverage, color=ink, marker="o", ms=3)
    axes.set_xlabel("quantile fraction τ")
    axes.set_ylabel("share of returns below quantile")
    axes.set_title("coverage: on the diagonal if correct")
    axes.set_aspect("equal")


def _ranks(axes: Axes, calibration: Calibration, ink: str) -> None:
    density = calibration.histogram() * BINS
    edges = np.linspace(0, 1, BINS + 1)
    axes.bar(edges[:-1], density, width=1 / BINS, align="edge", color=ink, alpha=0.75)
    axes.axhline(1, color=theme().quiet, lw=1, ls=":")
    axes.set_ylim(0, max(3.0, 1.05 * float(density.max())))
    axes.set_xlabel("rank of the return in its distribution")
    axes.set_ylabel("density (1 if correct)")
    axes.set_title("ranks: flat if correct")


def _means(axes: Axes, calibration: Calibration, ink: str) -> None:
    predicted, measured = calibration.means, calibration.returns
    shown = np.random.default_rng(0).permutation(len(measured))[:MAX_DOTS]
    least, most = min(predicted.min(), measured.min()), max(predicted.max(), measured.max())
    half = 0.55 * max(most - least, MIN_SPAN * calibration.tolerance)
    ends = [(least + most) / 2 - half, (least + most) / 2 + half]
    axes.plot(ends, ends, color=theme().quiet, lw=1, ls=":")
    axes.scatter(predicted[shown], measured[shown], s=6, alpha=0.4, color=ink, lw=0)
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)
    axes.set_xlabel("predicted mean")
    axes.set_ylabel("measured return")
    axes.set_title(f"bias of the mean: {calibration.bias:.3g}")
