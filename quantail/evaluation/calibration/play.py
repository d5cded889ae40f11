"""Episodes in which the predicted distribution of every decision is recorded with its actual return."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from quantail.agents.agent import Agent
from quantail.envs.adapt import Adapter
from quantail.envs.observations import observation_checksum
from quantail.envs.training_reward import training_reward
from quantail.evaluation.calibration.ranks import Array, crossing
from quantail.evaluation.protocols import LONGEST
from quantail.risk import RiskMeasure
from quantail.spaces import Observation, stack_observations
from quantail.taus import midpoints

ATOMS = 200  # quantiles that represent a predicted distribution
BATCH_SIZE = 16  # decisions in one forward pass: an image's features times ATOMS take much memory
NEGLIGIBLE = 0.01  # a return counts as known once the discount of the missing rewards is below this


@dataclass(frozen=True)
class Rollout:
    """One episode: the predicted distribution of every action taken, and its actual return."""

    episode: int
    seed: int
    actions: tuple[int, ...]
    checksums: tuple[int, ...]  # of the observation at each step
    distributions: Array  # [steps, atoms], in the order of increasing τ, not sorted
    returns: Array  # [steps], discounted, of the rewards that the agent is trained on
    crossings: Array | None = None  # [steps, 2]: quantile crossing, and the largest possible crossing
    truncated_at: int | None = None  # steps after which the episode was truncated

    @property
    def means(self) -> Array:
        """The predicted means: [steps]."""
        return np.asarray(self.distributions.mean(axis=1))


def horizon(discount: float) -> float:
    """Return after how many steps the discount is below NEGLIGIBLE; it may be infinite."""
    if discount == 0:
        return 1
    return math.inf if discount == 1 else math.ceil(math.log(NEGLIGIBLE) / math.log(discount))


def max_wait(discount: float) -> int:
    """Return the number of steps that are played at most to measure one return."""
    return int(min(horizon(discount), LONGEST))


def discounted_returns(
    rewards: Sequence[float], discount: float, ends: Sequence[bool] = (), rest: float = 0.0
) -> Array:
    """Return the discounted return from each step on: [steps].

    Returns stop where `ends` is true, and `rest` is the return after the last step.
    """
    returns, total = np.zeros(len(rewards)), rest
    for step in reversed(range(len(rewards))):
        total = rewards[step] + discount * (0.0 if ends and ends[step] else total)
        returns[step] = total
    return returns


@dataclass(frozen=True)
class Step:
    """The result of an action, as the agent is trained on it."""

    observation: Observation
    reward: float
    ends: bool  # the return ends here: at termination, or at a lost life if training ends it there
    terminated: bool
    truncated: bool  # and not terminated


def take_step(agent: Agent, adapter: Adapter, action: int) -> Step:
    """Take one step in the environment, with an action that is counted from 0."""
    observation, reward, terminated, truncated, info = adapter.step(agent.actions.to_env(action))
    ends = adapter.ends_return(terminated, info)
    reward = training_reward(agent.config.environment, reward)
    return Step(observation, reward, ends, terminated, truncated and not terminated)


def play_episode(
    agent: Agent, adapter: Adapter, risk: RiskMeasure, episode: int, seed: int, limit: int
) -> Rollout:
    """Play an episode and record its first `limit` steps; play on until their returns are known.

    The adapter must have no time limit, because the learned distribution has none: training bootstraps
    over truncation. All lives of a game belong to the same episode.
    """
    discount = agent.config.learner.discount
    recorder = _Recorder(agent)
    rewards: list[float] = []
    ends: list[bool] = []
    observation, _ = adapter.reset(seed=seed)
    while True:
        action = choose(agent, adapter, observation, risk)
        if len(rewards) < limit:
            recorder.add(observation, action)
        step = take_step(agent, adapter, action)
        observation = step.observation
        rewards.append(step.reward)
        ends.append(step.ends)
        if step.terminated or step.truncated or len(rewards) >= limit + max_wait(discount):
            break
        if len(rewards) >= limit and step.ends:
            break
    unfinished = not ends[-1]
    rest = bootstrap_value(agent, adapter, observation, risk) if unfinished else 0.0
    distributions, crossings = recorder.finish()
    return Rollout(
        episode=episode,
        seed=seed,
        actions=tuple(recorder.actions),
        checksums=tuple(recorder.checksums),
        distributions=distributions,
        returns=discounted_returns(rewards, discount, ends, rest)[:limit],
        crossings=crossings,
        truncated_at=len(rewards) if unfinished or step.truncated else None,
    )


def choose(agent: Agent, adapter: Adapter, observation: Observation, risk: RiskMeasure) -> int:
    """Return the agent's action among those that are allowed now, counted from 0."""
    return int(agent.actions.from_env(agent.act(observation, risk, mask=adapter.action_mask)))


def bootstrap_value(
    agent: Agent, adapter: Adapter, observation: Observation, risk: RiskMeasure
) -> float:
    """Return the predicted mean return from here on, which replaces the rewards that are not played."""
    action = choose(agent, adapter, observation, risk)
    distributions, _ = predict_distributions(agent, [(observation, action)])
    return float(distributions.mean())


def predict_distributions(
    agent: Agent, decisions: Sequence[tuple[Observation, int]]
) -> tuple[Array, Array | None]:
    """Return the predicted distributions of the actions taken, and their quantile crossing.

    The distributions are [decisions, atoms]; the crossing is [decisions, 2], or None for heads whose
    quantiles cannot cross.
    """
    observations = stack_observations([observation for observation, _ in decisions])
    actions = np.array([action for _, action in decisions])
    rows = np.arange(len(actions))
    quantiles = agent.quantiles(observations, midpoints(ATOMS).numpy())  # [decisions, atoms, actions]
    distributions = quantiles[rows, :, actions].astype(np.float64)
    raw = agent.unsorted_quantiles(observations, midpoints(ATOMS).numpy())
    return distributions, None if raw is None else crossing(raw[rows, :, actions].astype(np.float64))


@dataclass
class _Recorder:
    """Records the decisions of an episode and predicts their distributions in batches."""

    agent: Agent
    actions: list[int] = field(default_factory=list)
    checksums: list[int] = field(default_factory=list)
    pending: list[tuple[Observation, int]] = field(default_factory=list)
    predictions: list[tuple[Array, Array | None]] = field(default_factory=list)

    def add(self, observation: Observation, action: int) -> None:
        self.actions.append(action)
        self.checksums.append(observation_checksum(observation))
        self.pending.append((observation, action))
        if len(self.pending) == BATCH_SIZE:
            self._predict()

    def finish(self) -> tuple[Array, Array | None]:
        """Return the distributions, [steps, atoms], and their crossing, [steps, 2], where it applies."""
        if self.pending:
            self._predict()
        distributions = np.concatenate([batch for batch, _ in self.predictions])
        crossings = [one for _, one in self.predictions if one is not None]
        return distributions, np.concatenate(crossings) if crossings else None

    def _predict(self) -> None:
        self.predictions.append(predict_distributions(self.agent, self.pending))
        self.pending = []


def known_steps(rollouts: Sequence[Rollout], discount: float) -> int | None:
    """Return how many first steps of every episode have known returns; None if all have.

    The count is that of the episode which was truncated first, and applies to all episodes: keeping
    later steps of episodes that happened to end in time would select the short returns.
    """
    truncations = [rollout.truncated_at for rollout in rollouts if rollout.truncated_at is not None]
    if not truncations:
        return None
    return int(max(min(truncations) - horizon(discount) + 1, 0)) if horizon(discount) < math.inf else 0


def first_steps(rollout: Rollout, count: int | None) -> Rollout:
    """Return the first `count` steps of a rollout."""
    return replace(
        rollout,
        actions=rollout.actions[:count],
        checksums=rollout.checksums[:count],
        distributions=rollout.distributions[:count],
        returns=rollout.returns[:count],
        crossings=None if rollout.crossings is None else rollout.crossings[:count],
    )
