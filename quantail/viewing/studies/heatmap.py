"""A heat map of scores over a grid with two axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quantail.experiments.results import Results
from quantail.experiments.scoring import Measure, Scale, early, late, scale_of, score
from quantail.experiments.study import Axis
from quantail.viewing.studies.labels import axis_label, games_and_seeds, set_study_heading
from quantail.viewing.style import new_figure, theme
from quantail.viewing.words import spread_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure

LABEL_HEIGHT = 0.13  # of a label beside a colour bar, as a share of the bar
LABELLED = (-0.06, 1.04)  # range for labels beside a colour bar, as shares of the bar


def heatmap(results: Results) -> Figure:
    """Draw scores over the two axes of the grid, early and late in training.

    Reference agents are marked on the colour bar.
    """
    rows, columns = results.study.grid
    scale, window = scale_of(results), results.study.window
    figure = new_figure(8.6, 0.62 * len(rows.variants) + 1.5)
    panels = figure.subplots(1, 2)
    for axes, measure, when in (
        (panels[0], early(results), f"first {window:.0%} of training"),
        (panels[1], late(results), f"last {window:.0%} of training"),
    ):
        _heat(figure, axes, results, scale, measure, rows, columns)
        axes.set_title("\n".join([when, *_missing_references(results, scale, measure)]))
    set_study_heading(figure, results, f"{scale.name}; {games_and_seeds(results)}")
    return figure


def _missing_references(results: Results, scale: Scale, measure: Measure) -> list[str]:
    """Return a line on references that have no score yet, or not from all runs; empty if none."""
    missing = []
    for one in results.configs:
        if one.reference and not (found := score(results, scale, one, measure)).complete:
            absent = "not yet" if results.partial else "none"
            known = f"{found.runs} of {found.planned} runs" if found.runs else absent
            missing.append(f"{one.label.upper()}: {known}")
    return [", ".join(missing)] if missing else []


def _heat(
    figure: Figure,
    axes: Axes,
    results: Results,
    scale: Scale,
    measure: Measure,
    rows: Axis,
    columns: Axis,
) -> None:
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import FuncFormatter

    grid = {one.places: score(results, scale, one, measure) for one in results.configs if one.places}
    references = {
        one.label: score(results, scale, one, measure).value for one in results.configs if one.reference
    }
    table = np.array(
        [[grid[row.name, column.name].value for column in columns.variants] for row in rows.variants]
    )
    known = [*table[np.isfinite(table)], *(value for value in references.values() if np.isfinite(value))]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    high = high if high > low else low + 1.0
    image = axes.imshow(table, cmap="viridis", vmin=low, vmax=high, aspect="auto", origin="lower")
    for y, row in enumerate(rows.variants):
        for x, column in enumerate(columns.variants):
            one = grid[row.name, column.name]
            bright = np.isfinite(one.value) and (one.value - low) / (high - low) > 0.6
            ink = "k" if bright or not one.runs else "w"
            absent = (
                "not yet" if results.partial else "none"
            )  # there is no evaluation in this part of training
            text = scale.text(one.value) if one.runs else absent
            if not one.complete:
                axes.add_patch(
                    Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, hatch="////", ec=theme().quiet, lw=0)
                )
                text += f"\n{one.runs} of {one.planned} runs" if one.runs else ""
            plain = {} if one.runs else {"bbox": {"fc": theme().ground, "ec": "none", "pad": 1.5}}
            style: dict[str, Any] = {"color": ink if one.runs else theme().quiet, **plain}
            axes.text(x, y, text, ha="center", va="center", fontsize=8, **style)
    axes.set_xticks(range(len(columns.variants)), [one.name for one in columns.variants])
    axes.set_yticks(range(len(rows.variants)), [one.name for one in rows.variants])
    axes.set_xlabel(axis_label(columns))
    axes.set_ylabel(axis_label(rows))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    ticks = FuncFormatter(lambda value, _: f"{value:g}%" if scale.percent else f"{value:g}")
    bar = figure.colorbar(image, ax=axes, pad=0.03, aspect=14, format=ticks)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_ticks_position("left")
    bar.ax.tick_params(labelsize=8, length=2)
    _mark(bar, {name: v for name, v in references.items() if np.isfinite(v)}, scale, low, high)


def _mark(bar: Colorbar, values: dict[str, float], scale: Scale, low: float, high: float) -> None:
    """Mark values on a colour bar, with labels that do not overlap."""
    shares = [(value - low) / (high - low) for value in values.values()]
    places = spread_labels(shares, LABEL_HEIGHT, *LABELLED)
    for (name, value), share, placed in zip(values.items(), shares, places, strict=True):
        bar.ax.axhline(value, color=theme().ground, lw=3)
        bar.ax.axhline(value, color=theme().warning, lw=1.2)
        bar.ax.annotate(
            f"{name.upper()}\n{scale.text(value)}",
            xy=(1.0, share),
            xytext=(1.6, placed),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            color=theme().warning,
            arrowprops={"arrowstyle": "-", "color": theme().warning, "lw": 0.7},
        )
