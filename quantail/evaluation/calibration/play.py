"""Episodes in which every decision's predicted law is kept beside the return that then came."""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.acting.agent import Agent
from quantail.envs.adapt import Adapter
from quantail.envs.learned import as_learned
from quantail.evaluation.calibration.ranks import Array, disorder
from quantail.evaluation.protocols import LONGEST
from quantail.risk import RiskMeasure, midpoints

ATOMS = 200  # quantiles that stand for a predicted law
TOGETHER = 16  # decisions in one forward pass: an image's features times ATOMS take much memory
UNSEEN = 0.01  # weight of what comes after a cut, below which a return counts as known


@dataclass(frozen=True)
class Trail:
    """One episode: what was predicted at every step of the action taken, and what then came."""

    episode: int
    seed: int
    actions: tuple[int, ...]
    seen: tuple[int, ...]  # a checksum of the observation at each step
    laws: Array  # [steps, atoms], as the network gave them at rising τ
    returns: Array  # [steps], discounted, of rewards as the agent learns from them
    order: Array | None = None  # [steps, 2]: how far the quantiles are out of order, and could be
    cut_at: int | None = None  # steps after which it was cut

    @property
    def means(self) -> Array:
        """[steps], as predicted."""
        return np.asarray(self.laws.mean(axis=1))


def horizon(discount: float) -> float:
    """Steps after which what is left of a return weighs less than UNSEEN; there may be no such."""
    if discount == 0:
        return 1
    return math.inf if discount == 1 else math.ceil(math.log(UNSEEN) / math.log(discount))


def patience(discount: float) -> int:
    """Steps for which one return is waited for."""
    return int(min(horizon(discount), LONGEST))


def discounted(
    rewards: Sequence[float], discount: float, ends: Sequence[bool] = (), rest: float = 0.0
) -> Array:
    """The return from each step on; nothing is carried over an end, and `rest` follows the last step."""
    returns, total = np.zeros(len(rewards)), rest
    for step in reversed(range(len(rewards))):
        total = rewards[step] + discount * (0.0 if ends and ends[step] else total)
        returns[step] = total
    return returns


@dataclass(frozen=True)
class Step:
    """What came of an action, as learning sees it."""

    observation: NDArray[Any]
    reward: float
    ends: bool  # the return ends here: the game does, or a life where learning ends it there
    over: bool  # the game is over
    cut: bool  # and cut without being over


def take(agent: Agent, lane: Adapter, action: int) -> Step:
    """One step in the environment."""
    observation, reward, terminated, truncated, info = lane.step(action)
    life_lost = bool(info.get("life_lost", False))
    reward, ends = as_learned(agent.settings, reward, terminated=terminated, life_lost=life_lost)
    return Step(observation, reward, ends, terminated, truncated and not terminated)


def checksum(observation: NDArray[Any]) -> int:
    """To know an observation again."""
    return zlib.crc32(np.ascontiguousarray(observation).tobytes())


def play(agent: Agent, lane: Adapter, risk: RiskMeasure, episode: int, seed: int, limit: int) -> Trail:
    """An episode whose first `limit` steps are kept; it goes on until their returns are known.

    The lane has no time limit, as the learned law has none: a cut is bootstrapped over in training.
    Later lives of a game are steps of the same episode.
    """
    discount = agent.settings.discount
    kept = _Kept(agent)
    rewards: list[float] = []
    ends: list[bool] = []
    observation, _ = lane.reset(seed=seed)
    while True:
        action = int(agent.act(observation, risk))
        if len(rewards) < limit:
            kept.add(observation, action)
        step = take(agent, lane, action)
        observation = step.observation
        rewards.append(step.reward)
        ends.append(step.ends)
        if step.over or step.cut or len(rewards) >= limit + patience(discount):
            break
        if len(rewards) >= limit and step.ends:
            break
    cut = not ends[-1]
    rest = rest_of(agent, observation, risk) if cut else 0.0
    laws, order = kept.laws_and_order()
    return Trail(
        episode=episode,
        seed=seed,
        actions=tuple(kept.actions),
        seen=tuple(kept.seen),
        laws=laws,
        returns=discounted(rewards, discount, ends, rest)[:limit],
        order=order,
        cut_at=len(rewards) if cut or step.cut else None,
    )


def rest_of(agent: Agent, observation: NDArray[Any], risk: RiskMeasure) -> float:
    """The predicted mean from here on, in place of the little that is not played."""
    action = int(agent.act(observation, risk))
    laws, _ = predicted(agent, [(observation, action)])
    return float(laws.mean())


def predicted(agent: Agent, decisions: Sequence[tuple[NDArray[Any], int]]) -> tuple[Array, Array | None]:
    """The laws of the actions taken, [decisions, atoms], and their disorder where it may be seen."""
    observations = np.stack([observation for observation, _ in decisions])
    taken = np.array([action for _, action in decisions]) - agent.actions.start
    rows = np.arange(len(taken))
    quantiles = agent.quantiles(observations, midpoints(ATOMS).numpy())  # [decisions, atoms, actions]
    laws = quantiles[rows, :, taken].astype(np.float64)
    if agent.settings.head == "implicit":
        return laws, disorder(laws)
    raw = agent.raw_atoms(observations)
    return laws, None if raw is None else disorder(raw[rows, :, taken].astype(np.float64))


@dataclass
class _Kept:
    """The decisions of an episode, whose laws are predicted some at a time."""

    agent: Agent
    actions: list[int] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    waiting: list[tuple[NDArray[Any], int]] = field(default_factory=list)
    done: list[tuple[Array, Array | None]] = field(default_factory=list)

    def add(self, observation: NDArray[Any], action: int) -> None:
        self.actions.append(action)
        self.seen.append(checksum(observation))
        self.waiting.append((observation, action))
        if len(self.waiting) == TOGETHER:
            self._predict()

    def laws_and_order(self) -> tuple[Array, Array | None]:
        if self.waiting:
            self._predict()
        orders = [order for _, order in self.done if order is not None]
        return np.concatenate([laws for laws, _ in self.done]), np.concatenate(
            orders
        ) if orders else None

    def _predict(self) -> None:
        self.done.append(predicted(self.agent, self.waiting))
        self.waiting = []


def known_steps(trails: Sequence[Trail], discount: float) -> int | None:
    """The first steps of every episode whose returns are known; None where all are.

    Counted from the episode that was cut first, and the same for all: were later steps kept where the
    episode happened to end in time, the short returns would be chosen.
    """
    cuts = [trail.cut_at for trail in trails if trail.cut_at is not None]
    if not cuts:
        return None
    return int(max(min(cuts) - horizon(discount) + 1, 0)) if horizon(discount) < math.inf else 0


def first_steps(trail: Trail, count: int | None) -> Trail:
    """The trail's beginning."""
    return replace(
        trail,
        actions=trail.actions[:count],
        seen=trail.seen[:count],
        laws=trail.laws[:count],
        returns=trail.returns[:count],
        order=None if trail.order is None else trail.order[:count],
    )
