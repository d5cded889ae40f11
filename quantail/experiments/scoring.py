"""Score a combination over games and seeds, on a scale on which games can be averaged."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quantail.evaluation.games import baselines, game_of
from quantail.experiments.results import Array, Results, Trace
from quantail.experiments.study import Combination

Measure = Callable[[Trace], float]


@dataclass(frozen=True)
class Scale:
    """A linear scale for the raw returns of each game."""

    name: str  # label of an axis
    zero: dict[str, float]
    one: dict[str, float]
    percent: bool

    @property
    def short(self) -> str:
        """Return the name without the explanation of its ends."""
        return self.name.partition(":")[0]

    def of(self, env: str, value: Array) -> Array:
        """Return raw returns of a game on this scale."""
        return (value - self.zero[env]) / (self.one[env] - self.zero[env]) * (100 if self.percent else 1)

    def text(self, value: float) -> str:
        """Return a value as text."""
        if np.isnan(value):
            return "–"
        return (
            f"{value:.0f}%" if self.percent else f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"
        )


@dataclass(frozen=True)
class Score:
    """The mean score of a combination over its games, and the number of runs behind it."""

    value: float
    runs: int
    planned: int

    @property
    def complete(self) -> bool:
        return self.runs == self.planned


def scale_of(results: Results) -> Scale:
    """Return the scale of a study.

    Scores are human-normalised if human scores are known for all games, and raw for a single other game.
    Otherwise 0 is random play and 1 the best evaluation in the study.
    """
    games = results.study.games
    known = baselines()
    if all(game_of(env) in known for env in games):
        bases = {env: known[game_of(env)] for env in games}
        return Scale(
            "human-normalised score",
            {env: base.random for env, base in bases.items()},
            {env: base.human for env, base in bases.items()},
            percent=True,
        )
    if len(games) == 1:
        return Scale("mean return", {games[0]: 0.0}, {games[0]: 1.0}, percent=False)
    zero, one = {}, {}
    for env in games:
        traces = [trace for trace in results.traces if trace.job.env == env]
        random = [trace.random for trace in traces if np.isfinite(trace.random)]
        zero[env] = float(np.mean(random)) if random else 0.0
        best = max((float(trace.means.max()) for trace in traces if len(trace.means)), default=0.0)
        one[env] = best if best > zero[env] else zero[env] + 1.0
    return Scale("score: 0% random play, 100% best seen here", zero, one, percent=True)


def score(results: Results, scale: Scale, config: Combination, measure: Measure) -> Score:
    """Return the mean over games of the mean over seeds; games without a run are left out."""
    games, runs = [], 0
    for env in results.study.games:
        values = [value for one in results.of(config, env) if np.isfinite(value := measure(one))]
        runs += len(values)
        if values:
            games.append(float(scale.of(env, np.array(values)).mean()))
    planned = config.seeds * len(results.study.games)
    return Score(float(np.mean(games)) if games else float("nan"), runs, planned)


def early(results: Results) -> Measure:
    """Return the measure of a run's evaluations early in training."""
    return lambda trace: trace.early(results.study.window)


def late(results: Results) -> Measure:
    """Return the measure of a run's evaluations late in training."""
    return lambda trace: trace.late(results.study.window)


def best(trace: Trace) -> float:
    """Return the highest evaluation of a run; NaN until the run is complete."""
    return float(trace.means.max()) if trace.done else float("nan")
