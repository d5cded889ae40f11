"""Remove time limits from environments."""

from typing import Any

import gymnasium as gym
from gymnasium.wrappers import TimeLimit


def take_off_limit(env: gym.Wrapper[Any, Any, Any, Any]) -> int | None:
    """Remove every Gymnasium TimeLimit below a wrapper; return the smallest limit in steps, if any."""
    limits: list[int] = []
    outer: gym.Env[Any, Any] = env
    while isinstance(outer, gym.Wrapper):
        if isinstance(outer.env, TimeLimit):
            limits.append(outer.env._max_episode_steps)
            outer.env = outer.env.env
        else:
            outer = outer.env
    return min(limits, default=None)
