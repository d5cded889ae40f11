"""Is the learned distribution true? Predicted laws beside the returns that then came."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.acting.agent import Agent, Risk
from quantail.envs import EnvSource, make
from quantail.envs.adapt import Adapter
from quantail.envs.learned import as_learned
from quantail.envs.make import require_fresh
from quantail.errors import QuantailError
from quantail.evaluation.intervals import REPEATS
from quantail.evaluation.protocols import LONGEST, whole_number
from quantail.evaluation.sheets import Sheet
from quantail.risk import RiskMeasure, midpoints, parse_risk

Array = NDArray[np.float64]
ATOMS = 200  # quantiles that stand for a predicted law
LEVELS = np.linspace(0.05, 0.95, 19)
TOGETHER = 16  # decisions in one forward pass: an image's features times ATOMS take much memory
BINS = 20  # of the histogram
TOLERANCE = 0.01  # of the returns' deviation: closer than that counts as hit


@dataclass(frozen=True)
class Trail:
    """One episode: what was predicted at every step of the action taken, and what then came."""

    seed: int
    actions: tuple[int, ...]
    laws: Array  # [steps, atoms], as the network gave them at rising τ
    returns: Array  # [steps], discounted, of rewards as the agent learns from them


@dataclass(frozen=True)
class Spot:
    """One state, played on from many times."""

    episode: int
    step: int
    predicted: float  # mean
    played: float  # mean
    distance: float  # 1-Wasserstein, predicted to played
    noise: float  # the distance that as many continuations of a true law would have


@dataclass(frozen=True)
class Calibration:
    """Where realised returns fall in the laws that were predicted for them."""

    env: str
    risk: RiskMeasure
    trails: tuple[Trail, ...]
    truncated: int  # episodes left out, because their returns are not known
    ranks: tuple[Array, ...]  # of each trail: F(return), uniform on [0, 1] where the law is true
    spots: tuple[Spot, ...]

    @property
    def coverage(self) -> Array:
        """The share of returns at or below the predicted quantile, for each of LEVELS."""
        return np.array([(np.concatenate(self.ranks) <= level).mean() for level in LEVELS])

    def coverage_interval(self) -> tuple[Array, Array]:
        """95 % of the coverage, by bootstrap over whole episodes: steps of one are not independent."""
        below = np.array([[(ranks <= level).sum() for level in LEVELS] for ranks in self.ranks])
        return _over_episodes(below, np.array([len(ranks) for ranks in self.ranks]))

    @property
    def miscalibration(self) -> float:
        """Mean distance of the coverage from its level: 0 is true, 0.5 is the worst."""
        return float(np.abs(self.coverage - LEVELS).mean())

    @property
    def crossing(self) -> float:
        """The share of neighbouring quantiles that fall where they should rise."""
        return float(np.mean([(np.diff(trail.laws, axis=1) < 0).mean() for trail in self.trails]))

    @property
    def bias(self) -> float:
        """Mean of predicted minus realised returns."""
        return float(np.concatenate([t.laws.mean(axis=1) - t.returns for t in self.trails]).mean())

    def bias_interval(self) -> tuple[float, float]:
        """95 % of the bias, by bootstrap over whole episodes."""
        errors = np.array([[(t.laws.mean(axis=1) - t.returns).sum()] for t in self.trails])
        low, high = _over_episodes(errors, np.array([len(t.returns) for t in self.trails]))
        return float(low[0]), float(high[0])

    def histogram(self) -> Array:
        """Shares of ranks in BINS equal bins: flat where the law is true."""
        counts, _ = np.histogram(np.concatenate(self.ranks), bins=BINS, range=(0, 1))
        return np.asarray(counts / counts.sum())

    def verdict(self) -> str:
        """In words, by where the level lies outside the interval of the coverage."""
        low, high = self.coverage_interval()
        off = (low > LEVELS) | (high < LEVELS)
        if off.mean() <= 0.1 or self.miscalibration < 0.03:
            return "no sign that the predicted laws are wrong"
        if self.miscalibration < 0.08:
            return "predicted laws are close to what came"
        ranks = np.concatenate(self.ranks)
        outer = ((ranks < 0.1) | (ranks > 0.9)).mean()  # 0.2 for a true law
        below = (ranks < 0.5).mean()
        if outer < 0.12:
            return "predicted laws are too wide"
        if abs(below - 0.5) > 0.15:
            way = (
                "too high: returns come out lower" if below > 0.5 else "too low: returns come out higher"
            )
            return f"predicted returns are {way}"
        return f"predicted laws are too {'narrow' if outer > 0.2 else 'wide'}"

    def sheet(self) -> Sheet:
        """The figures."""
        low, high = self.coverage_interval()
        rows = [
            [f"{level:.2f}", f"{share:.3f}", f"{a:.3f} to {b:.3f}"]
            for level, share, a, b in zip(LEVELS, self.coverage, low, high, strict=True)
            if round(level * 100) in (5, 10, 25, 50, 75, 90, 95)
        ]
        steps = sum(len(trail.returns) for trail in self.trails)
        bias = self.bias_interval()
        notes = [
            f"{len(self.trails):,} episodes, {steps:,} steps under risk {self.risk}; intervals by "
            "bootstrap over episodes",
            f"{self.verdict()} (mean distance from the level {self.miscalibration:.3f})",
            f"bias of the mean {self.bias:.4g} ({bias[0]:.4g} to {bias[1]:.4g}); neighbouring quantiles "
            f"cross in {self.crossing:.1%} of the cases",
        ]
        if self.truncated:
            notes.append(f"{self.truncated} episodes were cut by a time limit and are left out")
        columns = ["level", "returns below", "95 % interval"]
        return Sheet(f"{self.env}: is the predicted distribution true?", columns, rows, notes)

    def spots_sheet(self) -> Sheet:
        """The states that were played on from many times."""
        rows = [
            [
                str(s.episode),
                str(s.step),
                *(f"{x:.4g}" for x in (s.predicted, s.played, s.distance, s.noise)),
            ]
            for s in self.spots
        ]
        columns = ["episode", "step", "mean predicted", "mean played", "1-Wasserstein", "of a true law"]
        return Sheet("single states, played on from many times", columns, rows)


def calibrate(
    agent: Agent,
    env: EnvSource | None = None,
    *,
    episodes: int = 100,
    states: int = 4,
    continuations: int = 100,
    risk: Risk | None = None,
    seed: int = 1,
) -> Calibration:
    """Play episodes under the agent's own policy, and compare what it predicted with what came.

    Rewards are those that the agent learns from: clipped, and a lost life is an end, where training had
    it so. `states` of the episodes are played on from `continuations` times each.
    """
    if not isinstance(agent, Agent):
        raise QuantailError("agent takes what quantail.load or quantail.train returns.")
    episodes = whole_number("episodes", episodes, 2)
    states, continuations = (
        whole_number("states", states, 0),
        whole_number("continuations", continuations, 2),
    )
    source = agent.env if env is None else env
    measure = agent.risk if risk is None else parse_risk(risk)
    lane = make(source, agent.settings)
    require_fresh(source)
    try:
        found = [
            _trail(agent, lane, measure, int(np.random.default_rng([seed, index]).integers(2**31)))
            for index in range(episodes)
        ]
        trails = tuple(trail for trail in found if trail is not None)
        if len(trails) < 2:
            raise QuantailError(
                f"{lane.name}: {episodes - len(trails)} of {episodes} episodes were cut by a time "
                "limit, so their returns are not known; calibration needs two episodes that end."
            )
        spots = _spots(agent, lane, measure, trails, states, continuations, seed)
        name = lane.name
    finally:
        lane.close()
    generator = np.random.default_rng(seed)
    slack = TOLERANCE * float(np.concatenate([trail.returns for trail in trails]).std())
    ranks = tuple(rank(trail.laws, trail.returns, slack, generator) for trail in trails)
    return Calibration(name, measure, trails, episodes - len(trails), ranks, spots)


def rank(laws: Array, returns: Array, slack: float, generator: np.random.Generator) -> Array:
    """F(return) under each predicted law, drawn evenly within its jump where the law has one there.

    For a true law this is uniform on [0, 1]. Atoms within `slack` of the return count as equal to it.
    """
    below = (laws < returns[:, None] - slack).mean(axis=1)
    upto = (laws <= returns[:, None] + slack).mean(axis=1)
    # Between two neighbouring atoms of a continuous law, the return may lie anywhere.
    jump = np.maximum(upto - below, 1 / laws.shape[1])
    drawn = below + generator.random(len(returns)) * jump
    return np.asarray(np.clip(drawn, 0, 1))


def discounted(rewards: Sequence[float], discount: float) -> Array:
    """The return from each step on."""
    returns, total = np.zeros(len(rewards)), 0.0
    for step in reversed(range(len(rewards))):
        total = rewards[step] + discount * total
        returns[step] = total
    return returns


def _trail(agent: Agent, lane: Adapter, risk: RiskMeasure, seed: int) -> Trail | None:
    """One episode, or None where a time limit cut it."""
    observation, _ = lane.reset(seed=seed)
    waiting: list[tuple[NDArray[Any], int]] = []
    laws, actions, rewards, over = [], [], [], False
    while not over:
        action = int(agent.act(observation, risk))
        waiting.append((observation, action))
        actions.append(action)
        if len(waiting) == TOGETHER:
            laws.append(_predicted(agent, waiting))
            waiting = []
        observation, reward, over, cut = _learned(agent, lane, action)
        rewards.append(reward)
        if (cut or len(rewards) >= LONGEST) and not over:
            return None
    if waiting:
        laws.append(_predicted(agent, waiting))
    returns = discounted(rewards, agent.settings.discount)
    return Trail(seed, tuple(actions), np.concatenate(laws), returns)


def _predicted(agent: Agent, decisions: Sequence[tuple[NDArray[Any], int]]) -> Array:
    """The laws of the actions that were taken: [decisions, atoms]."""
    observations = np.stack([observation for observation, _ in decisions])
    taken = np.array([action for _, action in decisions]) - agent.actions.start
    quantiles = agent.quantiles(observations, midpoints(ATOMS).numpy())  # [decisions, atoms, actions]
    return quantiles[np.arange(len(taken)), :, taken].astype(np.float64)


def _learned(agent: Agent, lane: Adapter, action: int) -> tuple[NDArray[Any], float, bool, bool]:
    """A step as learning sees it: the observation, the reward, whether it is an end, or a cut."""
    observation, reward, terminated, truncated, info = lane.step(action)
    life_lost = bool(info.get("life_lost", False))
    reward, ends = as_learned(agent.settings, reward, terminated=terminated, life_lost=life_lost)
    return observation, reward, ends, truncated


def _spots(
    agent: Agent,
    lane: Adapter,
    risk: RiskMeasure,
    trails: Sequence[Trail],
    states: int,
    continuations: int,
    seed: int,
) -> tuple[Spot, ...]:
    """Some states, each as likely as any other, played on from under fresh luck."""
    generator = np.random.default_rng([seed, 2**20])
    where = [(index, step) for index, trail in enumerate(trails) for step in range(len(trail.returns))]
    chosen = generator.choice(len(where), size=min(states, len(where)), replace=False)
    spots = []
    for index, step in (where[number] for number in sorted(chosen)):
        trail = trails[index]
        returns = np.array(
            [
                _continue(agent, lane, risk, trail, step, int(generator.integers(2**31)))
                for _ in range(continuations)
            ]
        )
        law = np.sort(trail.laws[step])
        spots.append(
            Spot(
                episode=index,
                step=step,
                predicted=float(law.mean()),
                played=float(returns.mean()),
                distance=_distance(law, returns),
                noise=_noise(law, continuations, generator),
            )
        )
    return tuple(spots)


def _continue(
    agent: Agent, lane: Adapter, risk: RiskMeasure, trail: Trail, step: int, luck: int
) -> float:
    """The return of playing on from a step, the same action first, with other luck."""
    observation, _ = lane.reset(seed=trail.seed)
    for action in trail.actions[:step]:
        observation, *_ = lane.step(action)
    lane.reseed(luck)
    rewards: list[float] = []
    over = cut = False
    while not (over or cut) and len(rewards) < LONGEST:
        action = trail.actions[step] if not rewards else int(agent.act(observation, risk))
        observation, reward, over, cut = _learned(agent, lane, action)
        rewards.append(reward)
    return float(discounted(rewards, agent.settings.discount)[0])


def _distance(law: Array, returns: Array) -> float:
    """The area between two quantile functions."""
    taus = (np.arange(2_000) + 0.5) / 2_000
    one = np.sort(law)[(taus * len(law)).astype(int)]
    other = np.sort(returns)[(taus * len(returns)).astype(int)]
    return float(np.abs(one - other).mean())


def _noise(law: Array, count: int, generator: np.random.Generator) -> float:
    """The mean distance of so many draws of a law from the law itself."""
    return float(np.mean([_distance(law, generator.choice(law, count)) for _ in range(50)]))


def _over_episodes(sums: Array, counts: NDArray[np.int64]) -> tuple[Array, Array]:
    """95 % of Σ sums / Σ counts, resampling episodes: sums [episodes, figures], counts [episodes]."""
    generator = np.random.default_rng(0)
    weights = generator.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=REPEATS)
    shares = weights @ sums / (weights @ counts)[:, None]  # [repeats, figures]
    low, high = np.quantile(shares, [0.025, 0.975], axis=0)
    return low, high
