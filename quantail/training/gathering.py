"""Where a run's transitions come from."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from quantail.acting.actor import Actor, Episode, Transition
from quantail.envs.adapt import newest_frame
from quantail.risk import RiskMeasure
from quantail.training.clock import Clock

Array = NDArray[Any]
Cut = Callable[
    [int, Array], None
]  # an environment's episode ends after its last transition, at this frame
CHUNK = 32  # decisions that an actor of another process makes in each environment before it reports


class Gathering(Protocol):
    """Plays the environments of a run. Transitions of each one come in the order of time."""

    def start(self) -> None:
        """Begin an episode in every environment where none is under way."""

    def gather(self, epsilon: float) -> list[Transition]:
        """The next transitions."""

    def epsilon(self, scheduled: float) -> float:
        """The chance of a random action that acting has where the schedule says this."""

    def turn(self, risk: RiskMeasure) -> None:
        """Act under this measure from now on."""

    def under_way(self) -> tuple[Sequence[Episode], Array]:
        """The episodes under way, and what each environment's agent sees: part of a checkpoint."""

    def restore(self, episodes: list[Episode], observations: Array) -> int:
        """Go on with episodes of a checkpoint; how many could not be, and were cut there."""

    def close(self) -> None:
        """Let go of the environments."""


class Here:
    """In this process, with the weights of the very moment: exact."""

    def __init__(self, actor: Actor, clock: Clock, cut: Cut) -> None:
        self.actor, self.clock, self.cut = actor, clock, cut

    def start(self) -> None:
        if not self.actor.episodes:
            self.actor.start()

    def gather(self, epsilon: float) -> list[Transition]:
        """One decision in every environment."""
        with self.clock.phase("acting"):
            actions = self.actor.choose(epsilon)
        with self.clock.phase("environment"):
            return self.actor.play(actions)

    def epsilon(self, scheduled: float) -> float:
        return scheduled

    def turn(self, risk: RiskMeasure) -> None:
        self.actor.risk = risk

    def under_way(self) -> tuple[Sequence[Episode], Array]:
        return self.actor.episodes, self.actor.observations.numpy()

    def restore(self, episodes: list[Episode], observations: Array) -> int:
        self.actor.episodes = episodes
        lost = 0
        for index, episode in enumerate(list(episodes)):
            if self.actor.replay_episode(index, episode, observations[index]):
                continue
            lost += 1
            if episode.actions:
                self.cut(index, newest_frame(self.actor.spec, observations[index]))
        return lost

    def close(self) -> None:
        for env in self.actor.envs:
            env.close()
