"""One number for a combination over games and seeds, and the scale on which games can be averaged."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quantail.evaluation.games import baselines, game_of
from quantail.experiments.results import Array, Results, Trace
from quantail.experiments.study import Config

Measure = Callable[[Trace], float]


@dataclass(frozen=True)
class Scale:
    """How a raw return of a game is shown."""

    name: str  # for an axis
    zero: dict[str, float]
    one: dict[str, float]
    percent: bool

    @property
    def short(self) -> str:
        """Its name without what its ends are."""
        return self.name.partition(":")[0]

    def of(self, env: str, value: Array) -> Array:
        """Raw returns on this scale."""
        return (value - self.zero[env]) / (self.one[env] - self.zero[env]) * (100 if self.percent else 1)

    def text(self, value: float) -> str:
        """A value as people read it."""
        if np.isnan(value):
            return "–"
        return (
            f"{value:.0f}%" if self.percent else f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"
        )


@dataclass(frozen=True)
class Score:
    """A combination over its games: the mean on the scale, and how many of its runs it rests on."""

    value: float
    runs: int
    planned: int

    @property
    def whole(self) -> bool:
        return self.runs == self.planned


def scale_of(results: Results) -> Scale:
    """Human-normalised where a person's score is known; one other game raw; several by the best here."""
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


def score(results: Results, scale: Scale, config: Config, measure: Measure) -> Score:
    """The mean over games of the mean over seeds; games without a run are left out and counted."""
    games, runs = [], 0
    for env in results.study.games:
        values = [value for one in results.of(config, env) if np.isfinite(value := measure(one))]
        runs += len(values)
        if values:
            games.append(float(scale.of(env, np.array(values)).mean()))
    planned = config.seeds * len(results.study.games)
    return Score(float(np.mean(games)) if games else float("nan"), runs, planned)


def early(results: Results) -> Measure:
    return lambda trace: trace.early(results.study.window)


def late(results: Results) -> Measure:
    return lambda trace: trace.late(results.study.window)


def best(trace: Trace) -> float:
    """The highest of its evaluations, once it came to its end."""
    return float(trace.means.max()) if trace.done else float("nan")
