"""An environment family of one small environment, with ids such as `tightrope:12`."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from quantail import EnvFamily

Observation = NDArray[np.float32]
SCHEME = "tightrope:"


class Tightrope(gym.Env[Observation, int]):
    """Walk to the end of a rope. A step pays 1 and may end in a fall; waiting is safe.

    The wind, which is observed, makes a fall more likely.
    """

    observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)
    action_space: spaces.Discrete = spaces.Discrete(2)

    def __init__(self, length: int) -> None:
        self.length, self.position, self.wind = length, 0, 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self.position = 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        falls = action == 1 and self.np_random.random() < 0.3 * self.wind
        self.position += action
        reward = -5.0 if falls else float(action) - 0.05
        over = bool(falls or self.position == self.length)
        return self._observe(), reward, over, False, {}

    def _observe(self) -> Observation:
        self.wind = float(self.np_random.random())
        return np.array([self.position / self.length, self.wind], np.float32)


class TightropeFamily(EnvFamily):
    """Recognises `tightrope:LENGTH`. Nothing else needs to know that ids of this form exist."""

    title = "tightropes"
    preset = "tightrope"

    def recognises(self, env: str) -> bool:
        return env.startswith(SCHEME)

    def make(self, env: str, render_mode: str | None = None) -> Tightrope:
        length = env.removeprefix(SCHEME)
        if not length.isdecimal() or int(length) < 1:
            raise ValueError(f"the length of a rope takes a whole number of at least 1, not {length!r}")
        return Tightrope(int(length))

    def action_names(self, env: gym.Env[Any, Any]) -> Sequence[str]:
        return ["wait", "walk"]
