"""Collect transitions from the environments of a run."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from quantail.agents.actor import Actor, Episode, Transition
from quantail.collecting.clock import Clock
from quantail.envs.actions import Mask
from quantail.risk import RiskMeasure
from quantail.spaces import (
    Array,
    Observation,
    leaves_of,
    map_leaves,
    newest_frame,
    row_of,
)
from quantail.stateful import State, Stateful, require_keys, require_numbers

# Called with an environment, its last frame and mask to truncate the episode after its last transition.
Truncate = Callable[[int, Observation, Mask | None], None]
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
        actor, masks = self.actor, self.actor.masks
        episodes, kept = list(actor.episodes), None if masks is None else masks.copy()
        expected = map_leaves(np.copy, actor.observations)
        failed = actor.continue_episodes(episodes, expected)
        for index in failed:
            if episodes[index].actions:
                frame = newest_frame(actor.spec, row_of(expected, index))
                self.truncate(index, frame, None if kept is None else kept[index])
        return len(failed)

    def collect(self, epsilon: float) -> list[Transition]:
        """Take one step in every environment."""
        with self.clock.phase("acting"):
            actions = self.actor.choose(epsilon)
        with self.clock.phase("environment"):
            played = self.actor.play(actions)
        for one in self.actor.lost:
            if one.has_steps:
                self.truncate(one.env, one.frame, one.mask)
        return played

    def epsilon(self, scheduled: float) -> float:
        return scheduled

    def set_risk(self, risk: RiskMeasure) -> None:
        self.actor.risk = risk

    def state_dict(self) -> dict[str, Any]:
        return state_of(self.actor.episodes, self.actor.observations, self.actor.masks)

    def load_state_dict(self, state: State) -> None:
        """Restore the episodes in progress; `start` replays them in the environments."""
        actor = self.actor
        actor.episodes = restore(state, actor.observations, actor.masks)
        self._restored = True

    def check(self) -> None:
        check_episodes(self.actor.episodes, len(self.actor.envs), self.actor.actions.count)

    def close(self) -> None:
        self.actor.envs.close()


def state_of(
    episodes: Sequence[Episode], observations: Observation, masks: Mask | None
) -> dict[str, Any]:
    """Return the state of a collector: its episodes in progress and what the agent sees of them."""
    return {
        "episodes": [asdict(episode) for episode in episodes],
        **_arrays(observations, masks),
    }


def restore(state: State, observations: Observation, masks: Mask | None) -> list[Episode]:
    """Return the episodes of a collector's state, and write what the agent saw into these arrays."""
    arrays = _arrays(observations, masks)
    require_keys(state, ("episodes", *arrays))
    for name, into in arrays.items():
        found = state[name]
        if (found.shape, found.dtype) != (into.shape, into.dtype):
            raise ValueError(
                f"{name} is {found.dtype} of shape {found.shape}, and it takes "
                f"{into.dtype} of shape {into.shape}"
            )
        into[...] = found
    return [Episode(**episode) for episode in state["episodes"]]


def _arrays(observations: Observation, masks: Mask | None) -> dict[str, Array]:
    """Return the arrays of a collector's state by their names."""
    arrays = {
        f"observations:{path}" if path else "observations": leaf
        for path, leaf in leaves_of(observations).items()
    }
    return arrays if masks is None else arrays | {"masks": masks}


def check_episodes(episodes: Sequence[Episode], num_envs: int, num_actions: int) -> None:
    """Raise an error unless there is one possible episode in progress for each environment."""
    if len(episodes) != num_envs:
        raise ValueError(f"it has {len(episodes)} episodes in progress, not {num_envs}")
    for one in episodes:
        require_numbers([one.score])
        if type(one.seed) is not int or not set(one.actions) <= set(range(num_actions)):
            raise ValueError("an episode in progress has an invalid seed or action")
