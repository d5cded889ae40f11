"""The base class of worlds: small tabular environments with a known model."""

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
    """A possible outcome of an action.

    Attributes:
        probability: Its probability.
        reward: The reward.
        state: The next state; None ends the episode.
    """

    probability: float
    reward: float
    state: State | None = None


class World(gym.Env[int, int]):
    """A finite environment in which no state is visited twice, so backward induction solves it exactly.

    A subclass defines its states (episodes start in the first), its actions, and the possible outcomes
    of each action. The observation is the index of the state; after the end it is the number of states.
    """

    about: ClassVar[str]
    legend: ClassVar[str]  # of the rendered image
    actions: ClassVar[Sequence[str]]
    discount: ClassVar[float] = 0.99  # of the exact distributions and of agents that learn them
    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.states: list[State] = self.all_states()
        self.observation_space = spaces.Discrete(len(self.states) + 1)  # type: ignore[assignment]
        self.action_space = spaces.Discrete(len(self.actions))  # type: ignore[assignment]
        self.state: State | None = self.states[0]
        self.path: list[State] = [self.states[0]]  # the states of this episode
        self.last_reward = 0.0

    def all_states(self) -> list[State]:
        """Return all states, starting with the initial state."""
        raise NotImplementedError

    def outcomes(self, state: State, action: int) -> list[Outcome]:
        """Return the possible outcomes of an action in a state."""
        raise NotImplementedError

    def picture(self) -> NDArray[np.uint8]:
        """Return an RGB image of the current state."""
        raise NotImplementedError

    def describe(self, state: State) -> str:
        """Return the name of a state in tables."""
        return str(state)

    def distinct_actions(self, state: State) -> list[int]:
        """Return the actions of a state, without those that have the same outcomes as an earlier one."""
        outcomes = [self.outcomes(state, action) for action in range(len(self.actions))]
        return [action for action, one in enumerate(outcomes) if outcomes.index(one) == action]

    def number(self, state: State | None) -> int:
        """Return the observation of a state: its index, or the number of states after the end."""
        return len(self.states) if state is None else self.states.index(state)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode, in the state `options["state"]` if given."""
        super().reset(seed=seed)
        start = (options or {}).get("state", self.states[0])
        if not isinstance(start, tuple) or start not in self.states:
            first, last = self.states[0], self.states[-1]
            raise QuantailError(
                f"state takes one of the world's {len(self.states)} states, from {first} to {last}"
                f", not {start!r}."
            )
        self.state = start
        self.path, self.last_reward = [start], 0.0
        return self.number(self.state), {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action, whose outcome is sampled; return what Gymnasium's `step` returns."""
        if self.state is None:
            raise QuantailError("the episode is over: call reset before the next step.")
        if not self.action_space.contains(action):
            known = ", ".join(f"{number} ({name})" for number, name in enumerate(self.actions))
            raise QuantailError(f"action takes one of {known}, not {action!r}.")
        possible = self.outcomes(self.state, int(action))
        cumulative = np.cumsum([outcome.probability for outcome in possible])
        index = int(np.searchsorted(cumulative, self.np_random.random() * cumulative[-1], side="right"))
        outcome = possible[min(index, len(possible) - 1)]
        self.state = outcome.state
        self.last_reward = float(outcome.reward)
        if outcome.state is not None:
            self.path.append(outcome.state)
        return self.number(outcome.state), float(outcome.reward), outcome.state is None, False, {}

    def render(self) -> NDArray[np.uint8]:
        """Return an RGB image of the current state, [height, width, 3]."""
        return self.picture()
