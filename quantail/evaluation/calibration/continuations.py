"""Monte Carlo checks of single states: continue from a visited state many times."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quantail.agents.agent import Agent
from quantail.distributions import ReturnDistribution
from quantail.envs.adapt import Adapter
from quantail.envs.observations import observation_checksum
from quantail.evaluation.calibration.play import (
    Rollout,
    bootstrap_value,
    choose,
    discounted_returns,
    horizon,
    max_wait,
    take_step,
)
from quantail.evaluation.calibration.ranks import Array
from quantail.risk import RiskMeasure
from quantail.spaces import Observation

DETERMINISTIC_AFTER = 3  # equal continuations that draw no random number, before we stop repeating them
NOISE_REPEATS = 200  # simulated samples from which the sampling noise is estimated


@dataclass(frozen=True)
class StateProbe:
    """Predicted and measured return of one state that was continued many times.

    `remark` says why a field is missing, if the state could not be compared.
    """

    episode: int
    step: int
    predicted: float  # mean
    measured: float | None = None  # mean over the continuations
    distance: float | None = None  # 1-Wasserstein distance, predicted to measured
    noise: float | None = None  # mean distance of an equally large sample of the predicted distribution
    noise_high: float | None = None  # 95 % quantile of that distance
    remark: str = ""


class _CannotContinueError(Exception):
    """A state cannot be continued; the message says why."""


def probe_states(
    agent: Agent,
    adapter: Adapter,
    risk: RiskMeasure,
    rollouts: Sequence[Rollout],
    states: int,
    continuations: int,
    seed: int,
) -> tuple[StateProbe, ...]:
    """Choose states uniformly from all rollouts and continue each one with fresh randomness."""
    generator = np.random.default_rng([seed, 2**20])
    ends = np.cumsum([len(rollout.returns) for rollout in rollouts])  # steps up to each rollout's end
    chosen = generator.choice(ends[-1], size=min(states, ends[-1]), replace=False)
    probes = []
    for number in sorted(chosen):
        index = int(np.searchsorted(ends, number, side="right"))
        rollout = rollouts[index]
        step = int(number - ends[index] + len(rollout.returns))
        probes.append(_probe(agent, adapter, risk, rollout, step, continuations, generator))
    return tuple(probes)


def _probe(
    agent: Agent,
    adapter: Adapter,
    risk: RiskMeasure,
    rollout: Rollout,
    step: int,
    continuations: int,
    generator: np.random.Generator,
) -> StateProbe:
    distribution = rollout.distributions[step]
    known = (rollout.episode, step, float(distribution.mean()))
    returns: list[float] = []
    random = False
    try:
        for _ in range(continuations):
            seed = int(generator.integers(2**31))
            returns.append(_continue(agent, adapter, risk, rollout, step, seed))
            random = random or adapter.used_randomness() or returns[-1] != returns[0]
            if len(returns) == DETERMINISTIC_AFTER and not random:
                return StateProbe(*known, measured=returns[0], remark="deterministic from here on")
    except _CannotContinueError as reason:
        return StateProbe(*known, remark=str(reason))
    measured, predicted = np.array(returns), ReturnDistribution.of(distribution)
    noise, noise_high = sampling_noise(distribution, continuations, generator)
    return StateProbe(
        *known,
        measured=float(measured.mean()),
        distance=float(predicted.wasserstein(ReturnDistribution.of(measured))),
        noise=noise,
        noise_high=noise_high,
    )


def _continue(
    agent: Agent, adapter: Adapter, risk: RiskMeasure, rollout: Rollout, step: int, seed: int
) -> float:
    """Replay a rollout up to `step`, reseed, and return the return from there, after the same action."""
    observation, _ = adapter.reset(seed=rollout.seed)
    for expected, action in zip(rollout.checksums[:step], rollout.actions[:step], strict=True):
        _require_same(observation, expected)
        observation, *_ = adapter.step(agent.actions.to_env(action))
    _require_same(observation, rollout.checksums[step])
    adapter.reseed(seed)
    action, rewards = rollout.actions[step], []
    discount = agent.config.learner.discount
    for _ in range(max_wait(discount)):
        result = take_step(agent, adapter, action)
        rewards.append(result.reward)
        if result.ends:
            return float(discounted_returns(rewards, discount)[0])
        if result.truncated:
            raise _CannotContinueError("the environment truncates episodes itself")
        action = choose(agent, adapter, result.observation, risk)
    if max_wait(discount) < horizon(discount):
        raise _CannotContinueError("the episode did not end within the step limit")
    rest = bootstrap_value(agent, adapter, result.observation, risk)
    return float(discounted_returns(rewards, discount, rest=rest)[0])


def _require_same(observation: Observation, expected: int) -> None:
    if observation_checksum(observation) != expected:
        raise _CannotContinueError("the same seed and actions led to another observation")


def sampling_noise(
    distribution: Array, count: int, generator: np.random.Generator
) -> tuple[float, float]:
    """Return the mean and 95 % quantile of the distance of `count` samples from their distribution."""
    drawn = generator.choice(distribution, (NOISE_REPEATS, count))
    distances = ReturnDistribution.of(distribution).wasserstein(ReturnDistribution.of(drawn)).numpy()
    return float(np.mean(distances)), float(np.quantile(distances, 0.95))
