"""How a person plays an environment, in the window of `quantail play` and in its recordings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Env = gym.Env[Any, Any]
Colour = tuple[int, int, int]

# The keys of a joystick, by pygame's names of the keys: left, up, right, down and fire.
JOYSTICK = {"left": "l", "up": "u", "right": "r", "down": "d", "space": "f"}
JOYSTICK |= {"a": "l", "w": "u", "d": "r", "s": "d"}


@dataclass(frozen=True)
class Controls:
    """The meaning of the keys in an environment."""

    action: Callable[[list[str]], int]  # maps the pressed keys, newest last, to an action
    words: str  # instructions for the player
    rate: float  # actions per second


def newest_key(meaning: Mapping[str, int], idle: int) -> Callable[[list[str]], int]:
    """Return controls in which the newest key decides; `idle` is the action without a key."""
    return lambda keys: next((meaning[key] for key in reversed(keys) if key in meaning), idle)


class HumanPlay:
    """How a person plays the environments of a family. The defaults suit any with discrete actions."""

    unit = "steps"  # in which the actions of a person are counted
    pixel_width = 1  # width of a pixel of the picture, in heights of a pixel

    def conditions(self, env: str) -> dict[str, Any]:
        """Return what a recorded game depends on besides the id, its seed and its actions."""
        return {}

    def controls(self, env: Env) -> Controls:
        """Return the keys: by default the numbers of the actions, or the arrows for two actions."""
        space = cast("spaces.Discrete", env.action_space)
        first, count = int(space.start), int(space.n)
        meaning = {str(number + 1): first + number for number in range(min(count, 9))}
        words = f"Keys 1 to {len(meaning)} choose actions; no key means 1"
        if count == 2:
            meaning |= {"left": first, "right": first + 1}
            words = "Left and right arrows choose actions; no key means left"
        return Controls(newest_key(meaning, first), words, env.metadata.get("render_fps") or 15)

    def picture(self, env: Env) -> NDArray[np.uint8]:
        """Return the RGB picture that the person sees."""
        return np.asarray(env.render())

    def legend(self, env: Env) -> list[tuple[str, Colour]]:
        """Return what the colours of the picture mean."""
        return []

    def advance(self, env: Env, actions: Sequence[int]) -> Any:
        """Play actions of a person in the person's environment, and return the last observation."""
        observation = None
        for action in actions:
            observation, *_ = env.step(int(action))
        return observation

    def start(self, env: Env, seed: int, actions: Sequence[int]) -> Any:
        """Reset an agent's environment to the state that a person reached; return the observation."""
        observation, _ = env.reset(seed=seed)
        return self.advance(env, actions) if actions else observation
