"""A world with a few states, of which everything is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from quantail.errors import QuantailError

State = tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    """What may come of an action: its chance, what it pays, and where it leads; None is the end."""

    chance: float
    reward: float
    state: State | None = None


class World(gym.Env[int, int]):
    """States that are never visited twice in an episode, so that exact laws follow by going backwards.

    A subclass names its states (the first is where episodes begin), its actions, and what may come of
    each action. Observations are the number of the state; after the end it is the number of states.
    """

    about: ClassVar[str]
    legend: ClassVar[str]  # of the picture
    actions: ClassVar[Sequence[str]]
    discount: ClassVar[float] = 0.99  # of the laws, and of agents that are to learn them
    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.states: list[State] = self.all_states()
        self.observation_space = spaces.Discrete(len(self.states) + 1)  # type: ignore[assignment]
        self.action_space = spaces.Discrete(len(self.actions))  # type: ignore[assignment]
        self.state: State | None = self.states[0]

    def all_states(self) -> list[State]:
        """Every state, the first one first."""
        raise NotImplementedError

    def outcomes(self, state: State, action: int) -> list[Outcome]:
        """What may come of an action in a state."""
        raise NotImplementedError

    def picture(self) -> NDArray[np.uint8]:
        """The world as it is now, in colours."""
        raise NotImplementedError

    def number(self, state: State | None) -> int:
        """What is observed in a state."""
        return len(self.states) if state is None else self.states.index(state)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin an episode, in the state `options["state"]` if given."""
        super().reset(seed=seed)
        asked = (options or {}).get("state", self.states[0])
        if not isinstance(asked, tuple) or asked not in self.states:
            first, last = self.states[0], self.states[-1]
            raise QuantailError(
                f"state takes one of the world's {len(self.states)} states, from {first} to {last}"
                f", not {asked!r}."
            )
        self.state = asked
        return self.number(self.state), {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if self.state is None:
            raise QuantailError("the episode is over: reset the world before its next step.")
        if not self.action_space.contains(action):
            known = ", ".join(f"{number} ({name})" for number, name in enumerate(self.actions))
            raise QuantailError(f"action takes one of {known}, not {action!r}.")
        possible = self.outcomes(self.state, int(action))
        chances = np.cumsum([outcome.chance for outcome in possible])
        index = int(np.searchsorted(chances, self.np_random.random() * chances[-1], side="right"))
        found = possible[min(index, len(possible) - 1)]
        self.state = found.state
        return self.number(found.state), float(found.reward), found.state is None, False, {}

    def render(self) -> NDArray[np.uint8]:
        return self.picture()
