"""Learning curves with a panel for each game, and the points that runs have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from quantail.experiments.results import Array, Results, Trace
from quantail.viewing.seeds import INTERVAL_NOTE, draw_mean, draw_random
from quantail.viewing.studies.labels import game_name, games_and_seeds, set_study_heading, style_of
from quantail.viewing.style import count_axis, new_figure
from quantail.viewing.words import place_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


PROGRESS_NOTE = "Thin lines are seeds in progress."


def curves(results: Results) -> Figure:
    """Draw the mean return over training, one panel per game, with intervals over the finished seeds.

    Seeds in progress are thin lines.
    """
    games = results.study.games
    wide = min(3, len(games))
    tall = -(-len(games) // wide)
    figure = new_figure(max(5.2, 3.0 * wide), 2.2 * tall + 0.4)
    panels = figure.subplots(tall, wide, squeeze=False)
    for index, config in enumerate(results.configs):
        panels[0, 0].plot([], [], **style_of(index, config), lw=1.8, label=config.label)
    for index, env in enumerate(games):
        axes = panels[index // wide, index % wide]
        _curve_panel(axes, results, env, bottom=index + wide >= len(games), top=index < wide)
        axes.set_title(game_name(env))
        if index % wide == 0:
            axes.set_ylabel("mean return")
    for index in range(len(games), wide * tall):
        panels[index // wide, index % wide].set_axis_off()
    place_legend(figure, note=band_note(results))
    set_study_heading(figure, results, games_and_seeds(results))
    return figure


def band_note(results: Results) -> str:
    """Explain the bands and the thin lines of a figure, where it has any."""
    several = any(
        sum(trace.done for trace in results.of(config, env)) > 1
        for config in results.configs
        for env in results.study.games
    )
    in_progress = any(len(trace.steps) and not trace.done for trace in results.traces)
    notes = [INTERVAL_NOTE if several else "", PROGRESS_NOTE if in_progress else ""]
    return " ".join(filter(None, notes))


def _curve_panel(axes: Axes, results: Results, env: str, *, bottom: bool, top: bool) -> None:
    frames_per_step, random = 1, []
    for index, config in enumerate(results.configs):
        traces = [one for one in results.of(config, env) if len(one.steps)]
        random += [one.random for one in traces if np.isfinite(one.random)]
        finished = [one for one in traces if one.done]
        style = style_of(index, config)
        for one in traces:
            frames_per_step = one.job.frames_per_step
            if not one.done:
                axes.plot(one.steps, one.means, **style, lw=0.7, alpha=0.7)
        if finished:
            draw_mean(axes, *common_points(finished), **style, lw=1.8)
    if random:
        draw_random(axes, float(np.mean(random)))
    count_axis(axes, frames_per_step, bottom=bottom, top=top)


def common_points(traces: Sequence[Trace]) -> tuple[Array, Array]:
    """Return the steps at which every run was evaluated, and the means: [points], [runs, points]."""
    return at_common_steps([(one.steps, one.means) for one in traces])


def at_common_steps(lines: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the steps that all lines share, and their values: [points], [lines, points]."""
    shared = set.intersection(*({float(s) for s in steps} for steps, _ in lines)) if lines else set()
    at = np.array(sorted(shared))
    values = [own[np.isin(steps, at)] for steps, own in lines]
    return at, np.array(values).reshape(len(lines), len(at))
