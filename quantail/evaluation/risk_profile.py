"""What episodes return under each attitude to risk: mean, VaR and CVaR of whole episodes, by playing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quantail.acting.agent import Agent, Risk
from quantail.envs import EnvSource
from quantail.errors import QuantailError
from quantail.evaluation.evaluate import Evaluation, evaluate
from quantail.evaluation.intervals import CONFIDENCE, REPEATS
from quantail.evaluation.sheets import Sheet
from quantail.risk import parse_risk

Array = NDArray[np.float64]
MEASURES = ("neutral", "cvar:0.1", "cvar:0.25", "wang:-0.75", "wang:0.75", "cpw:0.71", "pow:-2")


@dataclass(frozen=True)
class Figure:
    """A figure of the returns, and its bootstrap interval over episodes."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class RiskProfile:
    """The same episodes played under several risk measures; static figures of their returns."""

    played: tuple[Evaluation, ...]
    level: float  # of VaR and CVaR: the worst share of episodes

    def figures(self, evaluation: Evaluation) -> dict[str, Figure]:
        """Mean, VaR and CVaR of whole episodes' returns."""
        return {name: _bootstrap(evaluation.returns, ask) for name, ask in self._questions().items()}

    def _questions(self) -> dict[str, Callable[[Array], Array]]:
        return {
            "mean": lambda returns: returns.mean(axis=-1),
            f"VaR({self.level:g})": lambda returns: value_at_risk(returns, self.level),
            f"CVaR({self.level:g})": lambda returns: worst_mean(returns, self.level),
        }

    def sheet(self) -> Sheet:
        """A row for each measure."""
        rows = [
            [str(one.risk), *(str(figure) for figure in self.figures(one).values())]
            for one in self.played
        ]
        first = self.played[0]
        notes = [
            f"raw returns of {len(first.returns):,} whole episodes under each, the same seeds for all; "
            f"[{CONFIDENCE:.0%} bootstrap over episodes]",
            "a policy with the best distorted value at each step need not have the best one of the "
            "whole episode: that is why it is measured",
        ]
        columns = ["played under", *self._questions()]
        return Sheet(f"{first.env}: protocol {first.protocol.label}", columns, rows, notes)


def risk_profile(
    agent: Agent,
    risks: Sequence[Risk] = MEASURES,
    env: EnvSource | None = None,
    *,
    episodes: int = 200,
    level: float = 0.1,
    seed: int = 1,
) -> RiskProfile:
    """Play the same episodes under each measure with one agent."""
    if not 0 < level <= 1:
        raise QuantailError(f"level takes a number above 0 and at most 1, not {level}.")
    if not risks:
        raise QuantailError("risks takes one measure or more.")
    measures = [parse_risk(risk) for risk in risks]
    played = [evaluate(agent, env, episodes=episodes, seed=seed, risk=risk) for risk in measures]
    return RiskProfile(tuple(played), level)


def value_at_risk(returns: Array, level: float) -> Array:
    """The least return z such that at least this share of episodes is at most z; over the last axis."""
    ordered = np.sort(returns, axis=-1)
    count = ordered.shape[-1]
    index = int(np.ceil(level * count - 1e-9)) - 1
    return np.asarray(ordered[..., max(index, 0)])


def worst_mean(returns: Array, level: float) -> Array:
    """CVaR: the mean of this share of episodes, the worst ones; over the last axis."""
    ordered = np.sort(returns, axis=-1)
    count = ordered.shape[-1]
    edges = np.minimum(np.arange(count + 1) / count, level)
    return np.asarray(ordered @ np.diff(edges) / level)


def _bootstrap(returns: Array, ask: Callable[[Array], Array]) -> Figure:
    values = np.asarray(returns, np.float64)
    drawn = np.random.default_rng(0).integers(len(values), size=(REPEATS, len(values)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(ask(values[drawn]), [tail, 1 - tail])
    return Figure(float(ask(values)), float(low), float(high))
