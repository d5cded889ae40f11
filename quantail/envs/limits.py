"""Set and remove the time limits of environments."""

from typing import Any

import gymnasium as gym
from gymnasium.wrappers import TimeLimit


def set_limit(env: gym.Env[Any, Any], steps: int) -> gym.Env[Any, Any]:
    """Truncate episodes after this many steps, in place of the limit that an id was registered with."""
    spec = env.unwrapped.spec and gym.registry.get(env.unwrapped.spec.id)
    if spec is None or spec.max_episode_steps is None:
        return TimeLimit(env, steps)
    if isinstance(env, TimeLimit):
        return TimeLimit(env.env, steps)
    outer = env
    while isinstance(outer, gym.Wrapper):
        if isinstance(outer.env, TimeLimit):
            outer.env = TimeLimit(outer.env.env, steps)
            return env
        outer = outer.env
    return TimeLimit(env, steps)


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
