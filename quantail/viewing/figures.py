"""The figures of a report. Each function takes data and returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quantail.agents.agent import Agent
from quantail.collecting.clock import PHASES
from quantail.distributions import ReturnDistribution
from quantail.evaluation.intervals import performance_profiles
from quantail.evaluation.scores import Matrix
from quantail.risk import CVaR
from quantail.runs.history import Group
from quantail.runs.tables import METRICS
from quantail.taus import midpoints
from quantail.text import counted
from quantail.viewing.moments import Moment
from quantail.viewing.seeds import draw_mean, draw_random
from quantail.viewing.style import SMALL, colour, count_axis, ink_on, line_style, new_figure, theme
from quantail.viewing.weights import XLABEL, crossing_note
from quantail.viewing.words import place_legend, set_title, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
MAX_NAME = 1.6  # inches of a run's name
TAU_COUNT = 200  # points of a quantile function
LONG_METRIC = 24  # characters; the title of a longer name needs the whole width
FEW_POINTS = 20  # a line with fewer points has markers, so that a single point is visible


def learning_curves(groups: Sequence[Group]) -> Figure:
    """Draw the mean return over training for groups of one environment, with intervals over seeds."""
    figure = new_figure()
    axes = figure.subplots()
    for index, group in enumerate(groups):
        steps, means = group.curves()
        label = _seeds(group.label, len(group.runs))
        draw_mean(axes, steps, means, **line_style(index), marker="o", ms=2.5, label=label)
    draw_random(axes, float(np.mean([run.random for group in groups for run in group.runs])))
    count_axis(axes, groups[0].runs[0].info.frames_per_step)
    axes.set_ylabel("mean evaluation return")
    place_legend(figure)
    return figure


def metric_curves(groups: Sequence[Group]) -> Figure:
    """Draw each new column of metrics.csv in a panel of its own, with one line for each run."""
    from matplotlib.ticker import EngFormatter

    names = new_metrics(groups)
    wide = 1 if len(names) == 1 or max(map(len, names)) > LONG_METRIC else 2
    tall = -(-len(names) // wide)
    figure = new_figure(height=1.55 * tall + 0.75)
    panels = figure.subplots(tall, wide, sharex=True, squeeze=False)
    for axes, name in zip_longest(panels.flat, names):
        if name is None:
            axes.set_axis_off()
            continue
        for index, group in enumerate(groups):
            for run in group.runs:
                steps = run.metrics["steps"]
                values = run.metrics.get(name, np.full(len(steps), np.nan))
                known = np.isfinite(values)  # a row without the metric does not interrupt the line
                marker = "." if known.sum() < FEW_POINTS else ""
                axes.plot(steps[known], values[known], **line_style(index), lw=1.0, marker=marker)
        axes.set_title(name, parse_math=False)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    for axes in panels.flat[: len(names)][-wide:]:  # the lowest panel of each column
        axes.set_xlabel("steps")
        axes.tick_params(labelbottom=True)
    for index, group in enumerate(groups):
        panels[0, 0].plot([], [], **line_style(index), label=_seeds(group.label, len(group.runs)))
    place_legend(figure)
    return figure


def new_metrics(groups: Sequence[Group]) -> list[str]:
    """Return the columns that heads and callbacks have added to metrics.csv and that have any value."""
    columns = [pair for group in groups for run in group.runs for pair in run.metrics.items()]
    added = (name for name, values in columns if name not in METRICS and np.isfinite(values).any())
    return list(dict.fromkeys(added))


def _seeds(label: str, seeds: int) -> str:
    return f"{label} ({counted(seeds, 'seed')})"


def return_histograms(returns: Mapping[str, Array]) -> Figure:
    """Draw histograms of episode returns, one row for each agent, on a shared axis."""
    figure = new_figure(height=0.9 + 1.1 * len(returns))
    rows: list[Axes] = list(figure.subplots(len(returns), 1, sharex=True, squeeze=False)[:, 0])
    everything = np.concatenate(list(returns.values()))
    edges = _edges(everything).tolist()
    for index, (axes, (label, values)) in enumerate(zip(rows, returns.items(), strict=True)):
        axes.hist(
            values,
            bins=edges,
            color=colour(index),
            alpha=0.75,
            weights=np.full(len(values), 1 / len(values)),
        )
        axes.axvline(values.mean(), color=theme().ink, lw=1, label="mean")
        worst = float(CVaR(0.1).value(ReturnDistribution.of(values)))
        axes.axvline(worst, color=theme().ink, lw=1, ls=":", label="mean of the worst 10 %")
        episodes = counted(len(values), "episode")
        summary = f"{episodes}, mean {values.mean():.4g}, worst 10 % {worst:.4g}"
        set_title(axes, f"{label}: {summary}", float(figure.get_figwidth()) - 0.9)
        axes.set_ylabel("share")
    rows[-1].set_xlabel("raw return of an episode")
    place_legend(figure)
    return figure


def _edges(values: Array) -> Array:
    low, high = float(values.min()), float(values.max())
    if np.array_equal(values, values.round()) and high - low <= 40:
        return np.arange(low - 0.5, high + 1.5)
    bins = np.histogram_bin_edges(values, bins="auto")
    return (
        np.linspace(low, high, min(max(len(bins), 11), 41))
        if high > low
        else np.array([low - 0.5, low + 0.5])
    )


def quantile_functions(agent: Agent, moment: Moment) -> Figure:
    """Draw the predicted quantile function of every action's return at one moment of an episode."""
    figure = new_figure(height=3.2)
    if moment.picture is not None:
        shown, axes = figure.subplots(1, 2, width_ratios=(1, 1.9))
        shown.imshow(
            moment.picture, interpolation="nearest", aspect="auto" if _is_ale(moment) else "equal"
        )
        shown.set_axis_off()
        if _is_ale(moment):
            shown.set_box_aspect(210 / 160)
    else:
        axes = figure.subplots()
    note = draw_quantiles(axes, agent, moment)
    width = float(figure.get_figwidth()) * (0.6 if moment.picture is not None else 0.85)
    set_title(axes, f"step {moment.step}: {moment.why}", width)
    place_legend(figure, note=note)
    return figure


def draw_quantiles(axes: Axes, agent: Agent, moment: Moment) -> str:
    """Draw every action's quantile function, with those that are best by the mean and by CVaR(0.1) bold.

    Return a sentence for the legend if the quantiles crossed before they were sorted.
    """
    taus = midpoints(TAU_COUNT).numpy()
    returns = agent.returns(moment.observation)
    curves, means = np.sort(returns.quantile(taus), axis=0), returns.mean()
    seen, allowed, spec = moment.observation, moment.allowed, agent.actions
    chosen = int(spec.from_env(agent.act(seen, "neutral", mask=allowed)))
    averse = int(spec.from_env(agent.act(seen, CVaR(0.1), mask=allowed)))
    for action in range(agent.actions.count):
        choosers = [name for name, best in (("mean", chosen), ("CVaR(0.1)", averse)) if best == action]
        name = moment.actions[action] if moment.actions else f"action {spec.to_env(action)}"
        label = f"{name}, mean {means[action]:.2f}"
        if choosers:
            label += f": best by {' and '.join(choosers)}"
        width, above = (2.2, 3) if choosers else (1.1, 2)
        style = line_style(action)
        axes.plot(taus, curves[:, action], **style, lw=width, zorder=above, label=label)
    axes.set_xlabel(XLABEL)
    axes.set_ylabel("predicted discounted return")
    return crossing_note(returns.crossing(taus))


def _is_ale(moment: Moment) -> bool:
    return moment.picture is not None and moment.picture.shape[:2] == (210, 160)


def time_shares(seconds: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw how the time of each run is divided among the phases of training."""
    names = list(seconds)
    labels = [wrapped(name, MAX_NAME, SMALL) for name in names]
    lines = max(label.count("\n") + 1 for label in labels)
    figure = new_figure(height=0.6 + max(0.34, 0.2 * lines) * len(seconds))
    axes = figure.subplots()
    left = np.zeros(len(names))
    for index, phase in enumerate(PHASES):
        shares = np.array(
            [seconds[name].get(phase, 0.0) / max(sum(seconds[name].values()), 1e-9) for name in names]
        )
        rows = range(len(names))
        axes.barh(rows, shares, left=left, color=colour(index), label=phase, height=0.7)
        for row, share in enumerate(shares):
            if share >= 0.11:
                axes.text(
                    left[row] + share / 2,
                    row,
                    f"{share:.0%}",
                    ha="center",
                    va="center",
                    color=ink_on(colour(index)),
                    fontsize=9,
                )
        left += shares
    axes.set_xlim(0, 1)
    axes.set_yticks(range(len(names)), labels, fontsize=SMALL)
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    place_legend(figure)
    return figure


def profiles(scores: Mapping[str, Matrix]) -> Figure:
    """Draw performance profiles: the share of runs above each human-normalised score."""
    figure = new_figure()
    axes = figure.subplots()
    highest = max(float(np.quantile(matrix, 0.95)) for matrix in scores.values())
    lowest = min(float(matrix.min()) for matrix in scores.values())
    thresholds = np.linspace(min(lowest, 0.0), max(highest, 1.0), 81)
    profile = performance_profiles(scores, thresholds)
    for index, (agent, (share, interval)) in enumerate(profile.items()):
        axes.plot(thresholds, share, **line_style(index), label=_seeds(agent, len(scores[agent])))
        if interval is not None:
            axes.fill_between(thresholds, *interval, color=colour(index), alpha=0.2, lw=0)
    axes.axvline(1, color=theme().quiet, ls=":", lw=1)
    axes.set_xlabel("human-normalised score (1 is human)")
    axes.set_ylabel("share of runs with a higher score")
    axes.set_ylim(0, 1.02)
    place_legend(figure)
    return figure
