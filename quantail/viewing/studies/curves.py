"""Learning curves with a panel for each game, and the points that runs have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from quantail.experiments.results import Array, Results, Trace
from quantail.viewing.studies.labels import (
    game_name,
    games_and_seeds,
    label_at_right,
    line_style,
    set_title,
)
from quantail.viewing.style import count_axis, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def curves(results: Results) -> Figure:
    """Draw the mean return over training, one panel per game.

    Thin lines are seeds, and the thick line is the mean of the finished seeds.
    """
    games = results.study.games
    wide = min(3, len(games))
    tall = -(-len(games) // wide)
    figure = new_figure(max(5.2, 3.4 * wide), 2.5 * tall + 1.0)
    panels = figure.subplots(tall, wide, squeeze=False)
    for index, env in enumerate(games):
        axes = panels[index // wide, index % wide]
        _curve_panel(axes, results, env)
        axes.set_title(game_name(env))
        if index % wide == 0:
            axes.set_ylabel("mean evaluation return")
    for index in range(len(games), wide * tall):
        panels[index // wide, index % wide].set_axis_off()
    for index, config in enumerate(results.configs):
        panels[0, 0].plot([], [], **line_style(index, config), lw=1.8, label=config.label)
    figure.legend(loc="outside lower center", ncols=min(6, len(results.configs)), fontsize=8)
    set_title(figure, results, games_and_seeds(results))
    return figure


def _curve_panel(axes: Axes, results: Results, env: str) -> None:
    repeat, random = 1, []
    for index, config in enumerate(results.configs):
        traces = [one for one in results.of(config, env) if len(one.steps)]
        random += [one.random for one in traces if np.isfinite(one.random)]
        for one in traces:
            repeat = one.job.frames_per_step
            if len(traces) > 1 or not one.done:
                axes.plot(one.steps, one.means, **line_style(index, config), lw=0.5, alpha=0.4)
        if traces:
            # A seed in progress does not shorten the mean of the finished ones.
            steps, means = common_points([one for one in traces if one.done] or traces)
            axes.plot(steps, means.mean(axis=0), **line_style(index, config), lw=1.8)
    if random:
        axes.axhline(float(np.mean(random)), color="0.5", ls=":", lw=1)
        label_at_right(axes, "random play", float(np.mean(random)))
    count_axis(axes, repeat)


def common_points(traces: Sequence[Trace]) -> tuple[Array, Array]:
    """Return the steps at which every run was evaluated, and the means: [points], [runs, points]."""
    return at_common_steps([(one.steps, one.means) for one in traces])


def at_common_steps(lines: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the steps that all lines share, and their values: [points], [lines, points]."""
    shared = set.intersection(*({float(s) for s in steps} for steps, _ in lines)) if lines else set()
    at = np.array(sorted(shared))
    values = [own[np.isin(steps, at)] for steps, own in lines]
    return at, np.array(values).reshape(len(lines), len(at))
