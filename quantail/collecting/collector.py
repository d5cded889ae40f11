"""Collect transitions from the environments of a run."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from quantail.agents.actor import Actor, Episode, Transition
from quantail.collecting.clock import Clock
from quantail.envs.adapt import newest_frame
from quantail.risk import RiskMeasure

Array = NDArray[Any]
# Called with an environment and its last frame to truncate the episode after its last transition.
Truncate = Callable[[int, Array], None]
CHUNK = 32  # steps that a remote actor takes in each environment before it reports


class Collector(Protocol):
    """Steps the environments of a run. The transitions of each environment are in the order of time."""

    def start(self) -> None:
        """Start an episode in every environment that has none in progress."""

    def collect(self, epsilon: float) -> list[Transition]:
        """Return the next transitions."""

    def epsilon(self, scheduled: float) -> float:
        """Return the probability of a random action that is used, given the one of the schedule."""

    def set_risk(self, risk: RiskMeasure) -> None:
        """Act under this risk measure from now on."""

    def in_progress(self) -> tuple[Sequence[Episode], Array]:
        """Return the episodes in progress and the current observations, for checkpoints."""

    def restore(self, episodes: list[Episode], observations: Array) -> int:
        """Continue the episodes of a checkpoint.

        Return the number of episodes that could not be continued and were truncated.
        """

    def close(self) -> None:
        """Close the environments."""


class LocalCollector:
    """Collects transitions in the training process with the current weights: runs are reproducible."""

    def __init__(self, actor: Actor, clock: Clock, truncate: Truncate) -> None:
        self.actor, self.clock, self.truncate = actor, clock, truncate

    def start(self) -> None:
        if not self.actor.episodes:
            self.actor.start()

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

    def in_progress(self) -> tuple[Sequence[Episode], Array]:
        return self.actor.episodes, self.actor.observations.numpy()

    def restore(self, episodes: list[Episode], observations: Array) -> int:
        self.actor.episodes = episodes
        failed = 0
        for index, episode in enumerate(list(episodes)):
            if self.actor.replay_episode(index, episode, observations[index]):
                continue
            failed += 1
            if episode.actions:
                self.truncate(index, newest_frame(self.actor.spec, observations[index]))
        return failed

    def close(self) -> None:
        for env in self.actor.envs:
            env.close()
