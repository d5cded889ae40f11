"""The figures of a report. Each function takes data and returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quantail.agents.agent import Agent
from quantail.collecting.clock import PHASES
from quantail.distributions import ReturnDistribution
from quantail.evaluation.intervals import CONFIDENCE, mean_intervals, performance_profiles
from quantail.evaluation.scores import Matrix
from quantail.risk import CVaR
from quantail.runs.history import Group
from quantail.runs.tables import METRICS
from quantail.taus import midpoints
from quantail.text import counted
from quantail.viewing.moments import Moment
from quantail.viewing.style import colour, count_axis, ink_on, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
LONG_NAME = 20  # characters; after a longer name, the title continues on a second line
LONG_METRIC = 24  # characters; the title of a longer name needs the whole width
FEW_POINTS = 20  # a line with fewer points has markers, so that a single point is visible
LABELLED_ACTIONS = (
    4  # best actions in colour and in the legend, besides the chosen ones; others are grey
)


def learning_curves(groups: Sequence[Group]) -> Figure:
    """Draw the mean return over training for groups of one environment, with intervals over seeds."""
    figure = new_figure()
    axes = figure.subplots()
    for index, group in enumerate(groups):
        steps, means = group.curves()
        seeds = len(group.runs)
        label = _seeds(group.label, seeds)
        axes.plot(steps, means.mean(axis=0), color=colour(index), marker="o", ms=2.5, label=label)
        if seeds > 1 and len(steps):
            low, high = mean_intervals(means)
            axes.fill_between(steps, low, high, color=colour(index), alpha=0.2, lw=0)
    random = float(np.mean([run.random for group in groups for run in group.runs]))
    if np.isfinite(random):
        axes.axhline(random, color="0.5", ls=":", lw=1, label="random play")
    count_axis(axes, groups[0].runs[0].info.frames_per_step)
    axes.set_ylabel("mean evaluation return")
    axes.legend(loc="best")
    return figure


def metric_curves(groups: Sequence[Group]) -> Figure:
    """Draw each new column of metrics.csv in a panel of its own, with one line for each run."""
    from matplotlib.ticker import EngFormatter

    names = new_metrics(groups)
    wide = 1 if len(names) == 1 or max(map(len, names)) > LONG_METRIC else 2
    tall = -(-len(names) // wide)
    figure = new_figure(height=1.55 * tall + 0.75 + 0.2 * len(groups))
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
                style: dict[str, Any] = {"lw": 1.0, "marker": "." if known.sum() < FEW_POINTS else ""}
                axes.plot(steps[known], values[known], color=colour(index), **style)
        axes.set_title(name, parse_math=False)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    for axes in panels.flat[: len(names)][-wide:]:  # the lowest panel of each column
        axes.set_xlabel("steps")
        axes.tick_params(labelbottom=True)
    for index, group in enumerate(groups):
        panels[0, 0].plot([], [], color=colour(index), label=_seeds(group.label, len(group.runs)))
    figure.legend(loc="outside lower center")
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
    figure = new_figure(height=0.9 + 1.0 * len(returns))
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
        axes.axvline(values.mean(), color="k", lw=1)
        worst = float(CVaR(0.1).value(ReturnDistribution.of(values)))
        axes.axvline(worst, color="k", lw=1, ls=":")
        episodes = counted(len(values), "episode")
        summary = f"{episodes}, mean {values.mean():.4g}, worst 10 % {worst:.4g}"
        axes.set_title(f"{label}:{chr(10) if len(label) > LONG_NAME else ' '}{summary}")
        axes.set_ylabel("share")
    rows[-1].set_xlabel("raw return (line: mean; dotted: mean of the worst 10 %)")
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
    figure = new_figure(height=3.9)
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
    draw_quantiles(axes, agent, moment)
    axes.set_title(f"step {moment.step}: {moment.why}")
    figure.legend(loc="outside lower center")
    return figure


def draw_quantiles(axes: Axes, agent: Agent, moment: Moment) -> None:
    """Draw every action's quantile function and mark the best actions by the mean and by CVaR(0.1)."""
    taus = midpoints(200).numpy()
    curves = agent.quantiles(moment.observation, taus)
    means = agent.values(moment.observation, "neutral")
    chosen, averse = agent.act(moment.observation, "neutral"), agent.act(moment.observation, CVaR(0.1))
    labelled = set(np.argsort(means)[-LABELLED_ACTIONS:].tolist()) | {
        int(a) - agent.actions.start for a in (chosen, averse)
    }
    for action in sorted(range(agent.actions.count), key=lambda action: action in labelled):
        number = action + agent.actions.start
        choosers = [name for name, best in (("mean", chosen), ("CVaR(0.1)", averse)) if best == number]
        name = moment.actions[action] if moment.actions else f"action {number}"
        label = f"{name}, mean {means[action]:.2f}"
        if choosers:
            label += f": best by {' and '.join(choosers)}"
        style: dict[str, Any] = {"color": colour(action), "label": label, "lw": 1.8 if choosers else 1.0}
        axes.plot(
            taus, curves[:, action], **style if action in labelled else {"color": "0.8", "lw": 0.8}
        )
    axes.set_xlabel("τ")
    axes.set_ylabel("discounted return $Z_τ(x, a)$")


def _is_ale(moment: Moment) -> bool:
    return moment.picture is not None and moment.picture.shape[:2] == (210, 160)


def time_shares(seconds: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw how the time of each run is divided among the phases of training."""
    figure = new_figure(height=1.2 + 0.34 * len(seconds))
    axes = figure.subplots()
    names = list(seconds)
    left = np.zeros(len(names))
    for index, phase in enumerate(PHASES):
        shares = np.array(
            [seconds[name].get(phase, 0.0) / max(sum(seconds[name].values()), 1e-9) for name in names]
        )
        axes.barh(names, shares, left=left, color=colour(index), label=phase, height=0.7)
        for row, share in enumerate(shares):
            if share >= 0.08:
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
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3)
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
        axes.plot(thresholds, share, color=colour(index), label=_seeds(agent, len(scores[agent])))
        if interval is not None:
            axes.fill_between(thresholds, *interval, color=colour(index), alpha=0.2, lw=0)
    axes.axvline(1, color="0.5", ls=":", lw=1)
    axes.set_xlabel("human-normalised score (1 is human)")
    axes.set_ylabel("share of runs with a higher score")
    axes.set_ylim(0, 1.02)
    axes.legend(loc="best")
    return figure


INTERVAL_NOTE = f"The shaded band is the {CONFIDENCE:.0%} interval of the mean, by bootstrap over seeds."
