"""Several copies of an environment that are stepped together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from quantail.envs.actions import Mask
from quantail.envs.adapt import Adapter
from quantail.spaces import ActionSpec, Observation, ObservationSpec, same


@dataclass(frozen=True)
class Seen:
    """What an environment shows: an observation, and which actions are allowed, if it says so."""

    observation: Observation
    mask: Mask | None


@dataclass(frozen=True)
class Outcome:
    """The result of a step. `ends_return` is whether the return ends here in learning."""

    seen: Seen
    reward: float  # raw
    terminated: bool
    truncated: bool
    ends_return: bool

    @property
    def over(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated


@dataclass(frozen=True)
class EpisodeLog:
    """The seed and the actions of an episode in progress, and what they led to."""

    seed: int
    actions: Sequence[int]
    score: float
    observation: Observation


class VectorEnv(Protocol):
    """Copies of an environment, which are addressed by their number. Actions are counted from 0."""

    spec: ObservationSpec
    actions: ActionSpec

    def __len__(self) -> int:
        """Return the number of environments."""

    def reset(self, seeds: Mapping[int, int]) -> dict[int, Seen]:
        """Begin an episode with a seed in some of the environments."""

    def step(self, actions: Sequence[int]) -> Sequence[Outcome | None]:
        """Take an action in every environment; None where the episode was lost."""

    def replay(self, logs: Mapping[int, EpisodeLog]) -> dict[int, Seen | None]:
        """Play episodes again; None where one leads to another observation or score."""

    def close(self) -> None:
        """Close the environments."""


class LocalEnvs:
    """Environments in this process, stepped one after the other."""

    def __init__(self, envs: Sequence[Adapter]) -> None:
        self.envs = list(envs)
        self.spec, self.actions = self.envs[0].spec_of_observation, self.envs[0].actions

    def __len__(self) -> int:
        return len(self.envs)

    def reset(self, seeds: Mapping[int, int]) -> dict[int, Seen]:
        return {index: reset(self.envs[index], seed) for index, seed in seeds.items()}

    def step(self, actions: Sequence[int]) -> list[Outcome]:
        return [step(env, action) for env, action in zip(self.envs, actions, strict=True)]

    def replay(self, logs: Mapping[int, EpisodeLog]) -> dict[int, Seen | None]:
        return {index: replay(self.envs[index], log) for index, log in logs.items()}

    def close(self) -> None:
        for env in self.envs:
            env.close()


def reset(env: Adapter, seed: int) -> Seen:
    """Begin an episode."""
    observation, _ = env.reset(seed=seed)
    return Seen(observation, env.action_mask)


def step(env: Adapter, action: int) -> Outcome:
    """Take an action, counted from 0."""
    observation, reward, terminated, truncated, info = env.step(env.actions.to_env(action))
    ends = env.ends_return(terminated, info)
    return Outcome(Seen(observation, env.action_mask), reward, terminated, truncated, ends)


def replay(env: Adapter, log: EpisodeLog) -> Seen | None:
    """Play an episode again; return None if it leads to another observation or score.

    Rewards are compared too: those of a wrapper such as NormalizeReward depend on earlier episodes.
    """
    seen, score = reset(env, log.seed), 0.0
    for action in log.actions:
        outcome = step(env, action)
        seen, score = outcome.seen, score + outcome.reward
        if outcome.over:
            return None
    return seen if score == log.score and same(seen.observation, log.observation) else None
