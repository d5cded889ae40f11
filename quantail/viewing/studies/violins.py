"""Violins of scores over each axis of a grid, which may have any number of axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quantail.experiments.results import Results
from quantail.experiments.scoring import late, scale_of, score
from quantail.experiments.study import Axis
from quantail.viewing.studies.labels import (
    axis_label,
    games_and_seeds,
    label_at_right,
    set_study_heading,
)
from quantail.viewing.style import colour, new_figure, theme
from quantail.viewing.words import place_legend, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Scores = dict[tuple[str, ...], float]  # by the variant on each axis


def violins(results: Results) -> Figure:
    """Draw the scores of each choice over all others; a dot is a combination, a filled one preferred."""
    study, scale, measure = results.study, scale_of(results), late(results)
    grid = [one for one in results.configs if one.places]
    scores = {one.places: score(results, scale, one, measure).value for one in grid}
    preferred = tuple(study.preferred.get(axis.name, "") for axis in study.grid)
    figure = new_figure(max(5.2, 2.1 * len(study.grid) + 0.6), 3.0)
    panels = figure.subplots(1, len(study.grid), sharey=True, squeeze=False)[0]
    for index, (axes, axis) in enumerate(zip(panels, study.grid, strict=True)):
        _violin(axes, axis, index, scores, preferred)
        for one in results.configs:
            value = score(results, scale, one, measure).value if one.reference else float("nan")
            if np.isfinite(value):
                axes.axhline(value, color=theme().quiet, lw=1.2, zorder=0)
                if index == len(study.grid) - 1:
                    label_at_right(axes, one.label.upper(), value)
    panels[0].set_ylabel(f"{scale.short}, last {study.window:.0%} of training")
    dot = {"s": 26, "edgecolor": theme().ink, "lw": 0.7}
    panels[0].scatter([], [], color=theme().ground, label="one combination", **dot)
    if study.preferred:
        panels[0].scatter([], [], color=theme().ink, label="preferred combination", **dot)
    place_legend(figure)
    set_study_heading(
        figure,
        results,
        f"each choice, over all combinations of the others; {scale.name}; {games_and_seeds(results)}",
    )
    return figure


def _violin(axes: Axes, axis: Axis, index: int, scores: Scores, preferred: tuple[str, ...]) -> None:
    for position, variant in enumerate(axis.variants):
        members = {one: v for one, v in scores.items() if one[index] == variant.name}
        scored = {one: v for one, v in members.items() if np.isfinite(v)}
        values = np.array(list(scored.values()))
        if len(values) > 1 and values.std() > 0:
            drawn: Any = axes.violinplot([values], [position], widths=0.85, showextrema=False)
            for body in drawn["bodies"]:
                body.set(facecolor=colour(position), alpha=0.35, edgecolor="none")
        order = sorted(scored, key=lambda one: scored[one])
        for rank, one in enumerate(order):
            chosen = one == preferred
            axes.scatter(
                position + 0.09 * ((rank % 3) - 1) * (not chosen),
                scored[one],
                s=26,
                color=theme().ink if chosen else theme().ground,
                edgecolor=theme().ink,
                lw=0.7,
                zorder=4 if chosen else 3,
            )
    axes.set_xticks(range(len(axis.variants)), [one.name for one in axis.variants])
    axes.set_xlim(-0.6, len(axis.variants) - 0.4)
    set_title(axes, axis_label(axis), 1.9)
