"""MinAtar's games, each episode a function of its seed and its actions alone."""

from typing import Any

import gymnasium as gym
from minatar.gym import register_envs


class MinAtarEpisode(gym.Wrapper[Any, Any, Any, Any]):
    """MinAtar's sticky actions remember the last action of the episode before; this forgets it."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        answer = self.env.reset(seed=seed, options=options)
        self.unwrapped.game.last_action = 0  # type: ignore[attr-defined]
        return answer


def register() -> None:
    """Make the MinAtar ids known to Gymnasium, once."""
    if "MinAtar/Breakout-v1" not in gym.registry:
        register_envs()
