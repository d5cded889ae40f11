"""Playing whole episodes with an agent and counting the raw score."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quantail.acting.agent import Agent, Risk
from quantail.envs import EnvSource, make, specs_of
from quantail.envs.adapt import Adapter
from quantail.envs.make import name_of, require_fresh
from quantail.errors import QuantailError
from quantail.risk import Neutral, RiskMeasure, midpoints, parse_risk

LANES = 8  # episodes under way at once
LONGEST = 27_000  # steps after which an episode that does not end is cut


@dataclass(frozen=True)
class Evaluation:
    """Raw scores of whole episodes, and how they came about."""

    returns: NDArray[np.float64]  # the raw, undiscounted score of each episode
    lengths: NDArray[np.int64]  # in steps
    env: str
    risk: RiskMeasure  # of the policy that played
    epsilon: float
    seed: int

    @property
    def mean(self) -> float:
        return float(self.returns.mean())

    def value(self, risk: Risk | None = None) -> float:
        """The episodes' returns valued by a risk measure, the policy's own unless told.

        This is the risk of whole episodes: CVaR(0.1) is the mean of the worst tenth of them.
        """
        measure = self.risk if risk is None else parse_risk(risk)
        if isinstance(measure, Neutral):
            return self.mean
        ordered = np.sort(self.returns)
        levels = measure(midpoints(1000 * len(ordered), torch.float64)).numpy()
        return float(ordered[(levels * len(ordered)).astype(int).clip(max=len(ordered) - 1)].mean())

    @property
    def std(self) -> float:
        """Standard deviation over episodes."""
        return float(self.returns.std(ddof=1)) if len(self.returns) > 1 else 0.0

    def quantile(self, level: float) -> float:
        """A quantile of the episodes' scores."""
        return float(np.quantile(self.returns, level))

    def to_dict(self) -> dict[str, Any]:
        return {
            "env": self.env,
            "risk": str(self.risk),
            "epsilon": self.epsilon,
            "seed": self.seed,
            "episodes": len(self.returns),
            "mean": self.mean,
            "value": self.value(),
            "std": self.std,
            "min": float(self.returns.min()),
            "q25": self.quantile(0.25),
            "median": self.quantile(0.5),
            "q75": self.quantile(0.75),
            "max": float(self.returns.max()),
            "returns": self.returns.tolist(),
            "lengths": self.lengths.tolist(),
        }


def evaluate(
    agent: Agent,
    env: EnvSource | None = None,
    *,
    episodes: int = 30,
    seed: int = 1,
    risk: Risk | None = None,
    epsilon: float | None = None,
) -> Evaluation:
    """Play whole episodes in `env` (the agent's own unless told); the same seed plays the same ones."""
    if not isinstance(agent, Agent):
        raise QuantailError("agent takes what quantail.load or quantail.train returns.")
    if episodes < 1:
        raise QuantailError(f"episodes takes a whole number of at least 1, not {episodes}.")
    source = agent.env if env is None else env
    lanes = [make(source, agent.settings) for _ in range(min(LANES, episodes))]
    require_fresh(source)
    try:
        return play_episodes(agent, lanes, seed=seed, episodes=episodes, risk=risk, epsilon=epsilon)
    finally:
        for lane in lanes:
            lane.close()


def play_episodes(
    agent: Agent,
    lanes: Sequence[Adapter],
    *,
    seed: int,
    episodes: int = 0,
    steps: int = 0,
    risk: Risk | None = None,
    epsilon: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Evaluation:
    """Play `episodes` episodes, or the whole episodes that fit into `steps` steps one after another.

    Episode i depends on the seed and i alone, not on how many lanes there are. One that would never
    end is cut after 27,000 steps.
    """
    observation, actions = specs_of(lanes[0])
    if (observation, actions.count) != (agent.observation, agent.actions.count):
        raise QuantailError(
            f"the agent was trained on {name_of(agent.env)} ({agent.observation.shape}, "
            f"{agent.actions.count} actions), which {lanes[0].name} "
            f"({observation.shape}, {actions.count} actions) does not match."
        )
    measure = agent.risk if risk is None else parse_risk(risk)
    epsilon = agent.settings.evaluation_epsilon if epsilon is None else epsilon
    if not 0 <= epsilon <= 1:
        raise QuantailError(f"epsilon takes a number from 0 to 1, not {epsilon}.")
    finished: dict[int, _Play] = {}
    lanes = lanes if steps else lanes[:episodes]
    playing = [_Play(index, seed, lane) for index, lane in enumerate(lanes)]
    following = len(lanes)
    while not _complete(finished, episodes, steps):
        if stop():
            raise EvaluationStopped
        explore = [play.generator.random() < epsilon for play in playing]
        greedy = np.zeros(len(playing), np.int64)
        if not all(explore):
            batch = torch.from_numpy(np.stack([play.observation for play in playing]))
            greedy = agent.greedy(batch, measure)
        still = []
        for play, random, best in zip(playing, explore, greedy, strict=True):
            action = int(play.generator.integers(actions.count)) if random else int(best)
            play.step(action + actions.start)
            if not play.over:
                still.append(play)
                continue
            finished[play.index] = play
            if steps or following < episodes:
                still.append(_Play(following, seed, play.lane))
                following += 1
        playing = still
    counted = [finished[index] for index in range(_count(finished, episodes, steps))]
    return Evaluation(
        returns=np.array([play.score for play in counted]),
        lengths=np.array([play.length for play in counted]),
        env=lanes[0].name,
        risk=measure,
        epsilon=epsilon,
        seed=seed,
    )


class EvaluationStopped(Exception):  # noqa: N818
    """The caller asked to stop before the evaluation was complete."""


@dataclass
class _Play:
    """One episode under way in one lane."""

    index: int
    seed: int
    lane: Adapter
    score: float = 0.0
    length: int = 0
    over: bool = False
    generator: np.random.Generator = field(init=False)
    observation: Any = field(init=False)

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng([self.seed, self.index])
        self.observation, _ = self.lane.reset(seed=int(self.generator.integers(2**31)))

    def step(self, action: int) -> None:
        self.observation, reward, terminated, truncated, _ = self.lane.step(action)
        self.score += reward
        self.length += 1
        self.over = terminated or truncated or self.length >= LONGEST


def _complete(finished: dict[int, _Play], episodes: int, steps: int) -> bool:
    if not steps:
        return len(finished) == episodes
    total, index = 0, 0
    while index in finished and total < steps:
        total, index = total + finished[index].length, index + 1
    return total >= steps


def _count(finished: dict[int, _Play], episodes: int, steps: int) -> int:
    """How many episodes, in their order, count: those within the budget of steps, at least one."""
    if not steps:
        return episodes
    total, index = 0, 0
    while index in finished and total + finished[index].length <= steps:
        total, index = total + finished[index].length, index + 1
    return max(index, 1)
