"""What episodes return under each attitude to risk: mean, VaR and CVaR of whole episodes, by playing."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.acting.agent import Agent, Risk
from quantail.envs import EnvSource
from quantail.errors import QuantailError
from quantail.evaluation.evaluate import Evaluation, evaluate
from quantail.evaluation.intervals import CONFIDENCE, REPEATS
from quantail.evaluation.protocols import whole_number
from quantail.evaluation.sheets import Sheet
from quantail.risk import parse_risk

Array = NDArray[np.float64]
SCHEMA = 1  # of the JSON
ENOUGH = 10  # episodes in the tail
AT_ONCE = 4_000_000  # returns of a bootstrap in memory
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
    agent: str = ""
    checkpoint: int = 0  # steps of training behind the weights; 0 where that is not known

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
        if self.level * len(first.returns) < ENOUGH:
            notes.append(
                f"the worst {self.level:g} of {len(first.returns):,} episodes are "
                f"{self.level * len(first.returns):.3g}: VaR and CVaR take {ENOUGH} or more to be told"
            )
        columns = ["played under", *self._questions()]
        weights = f", checkpoint {self.checkpoint:,}" if self.checkpoint else ""
        title = f"{first.env}: {self.agent}{weights}, protocol {first.protocol.label}"
        return Sheet(title, columns, rows, notes)

    def to_dict(self) -> dict[str, Any]:
        """Every figure and every return, ready for JSON."""
        first = self.played[0]
        return {
            "schema": SCHEMA,
            "env": first.env,
            "agent": self.agent,
            "checkpoint": self.checkpoint,
            "protocol": first.protocol.to_dict(),
            "seed": first.seed,
            "episodes": len(first.returns),
            "level": self.level,
            "risks": [
                {
                    "risk": str(one.risk),
                    **{
                        name: asdict(figure)
                        for name, figure in zip(
                            ("mean", "var", "cvar"), self.figures(one).values(), strict=True
                        )
                    },
                    "returns": one.returns.tolist(),
                }
                for one in self.played
            ],
        }


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
    if not isinstance(agent, Agent):
        raise QuantailError("agent takes what quantail.load or quantail.train returns.")
    if not 0 < level <= 1:
        raise QuantailError(f"level takes a number above 0 and at most 1, not {level}.")
    if not risks:
        raise QuantailError("risks takes one measure or more.")
    measures = [parse_risk(risk) for risk in risks]
    episodes = whole_number("episodes", episodes, 2)
    played = [evaluate(agent, env, episodes=episodes, seed=seed, risk=risk) for risk in measures]
    return RiskProfile(tuple(played), level, agent.settings.agent, agent.checkpoint)


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
    """The figure and its interval; redrawn some repeats at a time, so that many episodes fit."""
    values = np.asarray(returns, np.float64)
    generator = np.random.default_rng(0)
    block = max(1, AT_ONCE // len(values))
    sizes = [min(block, REPEATS - begun) for begun in range(0, REPEATS, block)]
    asked = [ask(values[generator.integers(len(values), size=(size, len(values)))]) for size in sizes]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.concatenate(asked), [tail, 1 - tail])
    return Figure(float(ask(values)), float(low), float(high))
