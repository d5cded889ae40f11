"""Collect transitions from the environments of a run."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import torch
from numpy.typing import NDArray

from quantail.agents.actor import Actor, Episode, Transition
from quantail.collecting.clock import Clock
from quantail.envs.adapt import newest_frame
from quantail.risk import RiskMeasure
from quantail.stateful import State, Stateful, require_keys, require_numbers

Array = NDArray[Any]
# Called with an environment and its last frame to truncate the episode after its last transition.
Truncate = Callable[[int, Array], None]
CHUNK = 32  # steps that a remote actor takes in each environment before it reports


class Collector(Stateful, Protocol):
    """Steps the environments of a run. The transitions of each environment are in the order of time."""

    def start(self) -> int:
        """Start an episode in every environment, or continue the one that was restored.

        Return the number of restored episodes that could not be continued and were truncated.
        """

    def collect(self, epsilon: float) -> list[Transition]:
        """Return the next transitions."""

    def epsilon(self, scheduled: float) -> float:
        """Return the probability of a random action that is used, given the one of the schedule."""

    def set_risk(self, risk: RiskMeasure) -> None:
        """Act under this risk measure from now on."""

    def close(self) -> None:
        """Close the environments."""


class LocalCollector:
    """Collects transitions in the training process with the current weights: runs are reproducible."""

    def __init__(self, actor: Actor, clock: Clock, truncate: Truncate) -> None:
        self.actor, self.clock, self.truncate = actor, clock, truncate
        self._restored = False  # whether the episodes come from a checkpoint and must be replayed

    def start(self) -> int:
        if not self._restored:
            self.actor.start()
            return 0
        self._restored = False
        expected, failed = self.actor.observations.numpy().copy(), 0
        for index, episode in enumerate(list(self.actor.episodes)):
            if self.actor.replay_episode(index, episode, expected[index]):
                continue
            failed += 1
            if episode.actions:
                self.truncate(index, newest_frame(self.actor.spec, expected[index]))
        return failed

    def collect(self, epsilon: float) -> list[Transition]:
        """Take one step in every environment."""
        with self.clock.phase("acting"):
            actions = self.actor.choose(epsilon)
        with self.clock.phase("environment"):
            return self.actor.play(actions)

    def epsilon(self, scheduled: float) -> float:
        return scheduled

    def set_risk(self, risk: RiskMeasure) -> None:
        self.actor.risk = risk

    def state_dict(self) -> dict[str, Any]:
        return state_of(self.actor.episodes, self.actor.observations.numpy())

    def load_state_dict(self, state: State) -> None:
        """Restore the episodes in progress; `start` replays them in the environments."""
        self.actor.episodes = episodes_of(state, self.actor.observations.numpy())
        self.actor.observations.copy_(torch.from_numpy(state["observations"]))
        self._restored = True

    def check(self) -> None:
        check_episodes(self.actor.episodes, len(self.actor.envs), self.actor.actions.count)

    def close(self) -> None:
        for env in self.actor.envs:
            env.close()


def state_of(episodes: Sequence[Episode], observations: Array) -> dict[str, Any]:
    """Return the state of a collector: its episodes in progress and what the agent sees of them."""
    return {"episodes": [asdict(episode) for episode in episodes], "observations": observations}


def episodes_of(state: State, observations: Array) -> list[Episode]:
    """Return the episodes of a collector's state, whose observations must be like the given ones."""
    require_keys(state, ("episodes", "observations"))
    found = state["observations"]
    if (found.shape, found.dtype) != (observations.shape, observations.dtype):
        raise ValueError(
            f"observations is {found.dtype} of shape {found.shape}, and it takes "
            f"{observations.dtype} of shape {observations.shape}"
        )
    return [Episode(**episode) for episode in state["episodes"]]


def check_episodes(episodes: Sequence[Episode], num_envs: int, num_actions: int) -> None:
    """Raise an error unless there is one possible episode in progress for each environment."""
    if len(episodes) != num_envs:
        raise ValueError(f"it has {len(episodes)} episodes in progress, not {num_envs}")
    for one in episodes:
        require_numbers([one.score])
        if type(one.seed) is not int or not set(one.actions) <= set(range(num_actions)):
            raise ValueError("an episode in progress has an invalid seed or action")
