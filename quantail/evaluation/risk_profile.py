"""Measure the mean, VaR and CVaR of episode returns under several risk measures."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quantail.agents.agent import Agent, Risk, require_agent
from quantail.distributions import ReturnDistribution
from quantail.envs import EnvSource
from quantail.errors import QuantailError
from quantail.evaluation.evaluate import Evaluation, evaluate
from quantail.evaluation.intervals import CONFIDENCE, Counts, bootstrap, interval
from quantail.evaluation.result_tables import ResultTable
from quantail.risk import CVaR, parse_risk
from quantail.validation import number, whole_number

Array = NDArray[np.float64]
SCHEMA = 1  # of the JSON output
MIN_TAIL = 10  # episodes in the tail for reliable VaR and CVaR
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
    """The same episodes played under several risk measures, with statistics of their returns.

    Attributes:
        played: The evaluation under each measure.
        level: The fraction of VaR and CVaR: the worst share of episodes.
        agent: Name of the agent.
        checkpoint: Number of training steps of the weights; 0 if unknown.
    """

    played: tuple[Evaluation, ...]
    level: float  # of VaR and CVaR: the worst share of episodes
    agent: str = ""
    checkpoint: int = 0  # training steps of the weights; 0 if unknown

    def __repr__(self) -> str:
        means = ", ".join(f"{one.risk} {one.mean:.5g}" for one in self.played)
        return f"RiskProfile({self.agent}, {len(self.played[0].returns)} episodes, means: {means})"

    @property
    def _names(self) -> tuple[str, str, str]:
        return "mean", f"VaR({self.level:g})", f"CVaR({self.level:g})"

    def figures(self, evaluation: Evaluation) -> dict[str, Figure]:
        """Return mean, VaR and CVaR of the episode returns, with bootstrap intervals over episodes."""
        returns = np.asarray(evaluation.returns, np.float64)

        def resampled(drawn: Counts) -> Array:
            atoms = np.repeat(np.tile(returns, len(drawn)), drawn.ravel()).reshape(drawn.shape)
            return statistics(ReturnDistribution.of(atoms), self.level)

        low, high = interval(bootstrap(len(returns), resampled))
        own = statistics(ReturnDistribution.of(returns), self.level)
        return {
            name: Figure(*map(float, figure))
            for name, *figure in zip(self._names, own, low, high, strict=True)
        }

    def table(self) -> ResultTable:
        """Return a table with one row for each risk measure."""
        rows = [
            [one.risk.label, *(str(figure) for figure in self.figures(one).values())]
            for one in self.played
        ]
        first = self.played[0]
        notes = [
            f"Returns of the same {len(first.returns):,} whole episodes under each measure, neither "
            f"clipped nor discounted, with {CONFIDENCE:.0%} bootstrap intervals over episodes.",
            "A measure applies to the return from each decision on. The best action at every step need "
            "not give the best whole episodes, so this table comes from playing them.",
        ]
        if same := [one.risk.label for one in self.played[1:] if _same_play(one, first)]:
            notes.append(
                f"{_listed(same)} played the same episodes as {first.risk.label}: every return and "
                "length is equal. A measure that is changed after training re-ranks the next action; it "
                "does not plan. To plan for it, train with --risk."
            )
        if self.level * len(first.returns) < MIN_TAIL:
            notes.append(
                f"VaR and CVaR rest on the worst {self.level * len(first.returns):.3g} of "
                f"{len(first.returns):,} episodes; reliable values need {MIN_TAIL}, that is "
                f"--episodes {math.ceil(MIN_TAIL / self.level)}."
            )
        columns = ["risk measure", *self._names]
        weights = f" after {self.checkpoint:,} steps" if self.checkpoint else ""
        title = f"{first.env}: {self.agent}{weights}"
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
    """Play the same episodes under each of several risk measures with one agent.

    Args:
        agent: The agent.
        risks: The risk measures.
        env: Another environment than the agent's own.
        episodes: Number of episodes under each measure.
        level: The worst fraction of episodes, of which VaR is the highest and CVaR the mean return.
        seed: Seed of the episodes.
    """
    require_agent(agent)
    level = number("level", level, above=0, most=1)
    if not risks:
        raise QuantailError("risks takes one risk measure or more.")
    measures = [parse_risk(risk) for risk in risks]
    episodes = whole_number("episodes", episodes, 2)
    played = [evaluate(agent, env, episodes=episodes, seed=seed, risk=risk) for risk in measures]
    return RiskProfile(tuple(played), level, agent.config.run.agent, agent.checkpoint)


def _listed(names: Sequence[str]) -> str:
    """Return names in words: a, b and c."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _same_play(one: Evaluation, other: Evaluation) -> bool:
    """Whether two evaluations with the same seeds have the same episodes."""
    return np.array_equal(one.returns, other.returns) and np.array_equal(one.lengths, other.lengths)


def statistics(z: ReturnDistribution, level: float) -> Array:
    """Return mean, VaR and CVaR: [..., 3].

    VaR is the least return z with P(Z ≤ z) ≥ level, and CVaR the mean of the worst share `level`.
    """
    var = z.quantile([level]).squeeze(-1)
    return torch.stack([z.mean(), var, CVaR(level).value(z)], dim=-1).numpy()
