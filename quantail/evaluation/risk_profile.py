"""Measure the mean, VaR and CVaR of episode returns under several risk measures."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quantail.agents.agent import Agent, Risk
from quantail.distributions import ReturnDistribution
from quantail.envs import EnvSource
from quantail.errors import QuantailError
from quantail.evaluation.evaluate import Evaluation, evaluate
from quantail.evaluation.intervals import CONFIDENCE, REPEATS
from quantail.evaluation.protocols import whole_number
from quantail.evaluation.result_tables import ResultTable
from quantail.risk import CVaR, parse_risk

Array = NDArray[np.float64]
SCHEMA = 1  # of the JSON output
MIN_TAIL = 10  # episodes in the tail for reliable VaR and CVaR
BLOCK_SIZE = 4_000_000  # resampled returns in memory at a time
MEASURES = ("neutral", "cvar:0.1", "cvar:0.25", "wang:-0.75", "wang:0.75", "cpw:0.71", "pow:-2")


@dataclass(frozen=True)
class Figure:
    """A statistic of the returns with its bootstrap interval over episodes."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class RiskProfile:
    """The same episodes played under several risk measures, with statistics of their returns."""

    played: tuple[Evaluation, ...]
    level: float  # of VaR and CVaR: the worst share of episodes
    agent: str = ""
    checkpoint: int = 0  # training steps of the weights; 0 if unknown

    def figures(self, evaluation: Evaluation) -> dict[str, Figure]:
        """Return mean, VaR and CVaR of the episode returns."""
        return {
            name: _bootstrap(evaluation.returns, statistic)
            for name, statistic in self._statistics().items()
        }

    def _statistics(self) -> dict[str, Callable[[Array], Array]]:
        return {
            "mean": lambda returns: returns.mean(axis=-1),
            f"VaR({self.level:g})": lambda returns: value_at_risk(returns, self.level),
            f"CVaR({self.level:g})": lambda returns: conditional_value_at_risk(returns, self.level),
        }

    def table(self) -> ResultTable:
        """Return a table with one row for each risk measure."""
        rows = [
            [str(one.risk), *(str(figure) for figure in self.figures(one).values())]
            for one in self.played
        ]
        first = self.played[0]
        notes = [
            f"raw returns of {len(first.returns):,} whole episodes per measure, with the same seeds; "
            f"[{CONFIDENCE:.0%} bootstrap interval over episodes]",
            "the policy with the best distorted value at each step need not have the best distorted "
            "value of whole episodes, which is measured here",
        ]
        if self.level * len(first.returns) < MIN_TAIL:
            notes.append(
                f"the worst {self.level:g} of {len(first.returns):,} episodes are "
                f"{self.level * len(first.returns):.3g}: reliable VaR and CVaR need {MIN_TAIL} or more"
            )
        columns = ["risk measure", *self._statistics()]
        weights = f", checkpoint {self.checkpoint:,}" if self.checkpoint else ""
        title = f"{first.env}: {self.agent}{weights}, protocol {first.protocol.label}"
        return ResultTable(title, columns, rows, notes)

    def to_dict(self) -> dict[str, Any]:
        """Return all statistics and returns, ready for JSON."""
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
    """Play the same episodes under each risk measure with one agent.

    `level` is the level of VaR and CVaR: the worst share of episodes.
    """
    if not isinstance(agent, Agent):
        raise QuantailError("agent takes an Agent, as quantail.load and quantail.train return it.")
    if not 0 < level <= 1:
        raise QuantailError(f"level takes a number above 0 and at most 1, not {level}.")
    if not risks:
        raise QuantailError("risks takes one risk measure or more.")
    measures = [parse_risk(risk) for risk in risks]
    episodes = whole_number("episodes", episodes, 2)
    played = [evaluate(agent, env, episodes=episodes, seed=seed, risk=risk) for risk in measures]
    return RiskProfile(tuple(played), level, agent.settings.agent, agent.checkpoint)


def value_at_risk(returns: Array, level: float) -> Array:
    """Return VaR over the last axis: the least return z with at least `level` of episodes ≤ z."""
    fraction = torch.tensor([level], dtype=torch.float64)
    return np.asarray(ReturnDistribution.of(returns).quantile(fraction).squeeze(-1).numpy())


def conditional_value_at_risk(returns: Array, level: float) -> Array:
    """Return CVaR over the last axis: the mean of the worst share `level` of episodes."""
    return np.asarray(CVaR(level).value(ReturnDistribution.of(returns)).numpy())


def _bootstrap(returns: Array, statistic: Callable[[Array], Array]) -> Figure:
    """Return the statistic with its interval, resampling in blocks to bound memory."""
    values = np.asarray(returns, np.float64)
    generator = np.random.default_rng(0)
    block = max(1, BLOCK_SIZE // len(values))
    sizes = [min(block, REPEATS - start) for start in range(0, REPEATS, block)]
    resampled = [
        statistic(values[generator.integers(len(values), size=(size, len(values)))]) for size in sizes
    ]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.concatenate(resampled), [tail, 1 - tail])
    return Figure(float(statistic(values)), float(low), float(high))
