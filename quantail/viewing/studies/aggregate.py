"""Learning curves of the mean and the median over games."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from quantail.experiments.results import Array, Results
from quantail.experiments.scoring import Scale, scale_of
from quantail.experiments.study import Combination
from quantail.text import counted
from quantail.viewing.seeds import INTERVAL_NOTE, draw_interval
from quantail.viewing.studies.curves import at_common_steps, common_points
from quantail.viewing.studies.labels import games_and_seeds, set_study_heading, style_of
from quantail.viewing.style import count_axis, new_figure
from quantail.viewing.words import place_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def aggregate(results: Results) -> Figure:
    """Draw the mean and the median over games of normalised scores.

    Thick lines are means of the seeds that have finished all games, with intervals from two such seeds
    on; thin lines are seeds that have not.
    """
    scale, games = scale_of(results), len(results.study.games)
    figure = new_figure(8.6, 2.9)
    panels = figure.subplots(1, 2)
    frames_per_step = results.traces[0].job.frames_per_step if results.traces else 1
    intervals = False
    for axes, over, name in ((panels[0], np.mean, "mean"), (panels[1], np.median, "median")):
        shown: set[int] = set()
        for index, config in enumerate(results.configs):
            found = [_seed_line(results, scale, config, seed, over) for seed in range(config.seeds)]
            lines = [line for line in found if line]
            shown |= {line.games for line in lines}
            style, label = style_of(index, config), _legend_label(lines, config, games)
            complete = [line for line in lines if line.complete]
            for line in lines:
                if not line.complete:
                    axes.plot(line.steps, line.values, **style, lw=0.7, alpha=0.7)
            if lines:
                steps, means = at_common_steps([(line.steps, line.values) for line in complete])
                axes.plot(steps, means.mean(axis=0) if complete else [], **style, lw=1.8, label=label)
                draw_interval(axes, steps, means, style["color"])
            intervals = intervals or len(complete) > 1
        axes.set_title(f"{name} over {_range_of_games(shown, games)}")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}%" if scale.percent else f"{value:g}")
        count_axis(axes, frames_per_step)
    panels[0].set_ylabel(scale.short)
    place_legend(figure, note=INTERVAL_NOTE if intervals else "", columns=3)
    set_study_heading(figure, results, f"{scale.name}; {games_and_seeds(results)}")
    return figure


@dataclass(frozen=True)
class SeedLine:
    """The curve of one seed, aggregated over its games."""

    steps: Array
    values: Array
    games: int  # number of games in the curve
    complete: bool  # whether all games of the study are finished


def _seed_line(
    results: Results, scale: Scale, config: Combination, seed: int, over: Callable[..., Any]
) -> SeedLine | None:
    """Aggregate one seed over its finished games; if there is none yet, over those in progress."""
    started = [
        one
        for env in results.study.games
        for one in results.of(config, env)
        if one.job.seed == seed and len(one.steps)
    ]
    if not started:
        return None
    done = [one for one in started if one.done]
    traces = done or started
    steps, means = common_points(traces)
    shown = [scale.of(one.job.env, row) for one, row in zip(traces, means, strict=True)]
    complete = len(done) == len(results.study.games)
    return SeedLine(steps, over(np.array(shown), axis=0), len(traces), complete)


def _legend_label(lines: Sequence[SeedLine], config: Combination, games: int) -> str:
    """Return the name of a combination, with the number of complete seeds and games."""
    complete = sum(line.complete for line in lines)
    if complete == config.seeds:
        return f"{config.label} ({counted(complete, 'seed')})"
    text = f"{complete} of {counted(config.seeds, 'seed')} complete"
    if others := {line.games for line in lines if not line.complete}:
        text += f", thin: {_range_of_games(others, games)}"
    return f"{config.label} ({text})"


def _range_of_games(counts: set[int], games: int) -> str:
    """Describe the number of games, or its range."""
    if not counts or counts == {games}:
        return counted(games, "game")
    least, most = min(counts), max(counts)
    return f"{least if least == most else f'{least} to {most}'} of {counted(games, 'game')}"
