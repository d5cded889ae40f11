"""The family of the tabular worlds."""

from collections.abc import Sequence
from typing import Any, cast

import gymnasium as gym

from quantail.envs.family import EnvFamily, entry_point
from quantail.envs.worlds.tabular import World
from quantail.registration import NAMES, register, world_id


class Worlds(EnvFamily):
    """Small tabular environments whose return distributions are known."""

    title = "tabular worlds"
    preset = "worlds"

    def recognises(self, env: str) -> bool:
        return entry_point(env).startswith("quantail.envs.worlds")

    def register_ids(self) -> None:
        register()

    def owns(self, env: gym.Env[Any, Any]) -> bool:
        return isinstance(env.unwrapped, World)

    def action_names(self, env: gym.Env[Any, Any]) -> Sequence[str]:
        return list(cast("World", env.unwrapped).actions)

    def legend(self, env: gym.Env[Any, Any]) -> str:
        return cast("World", env.unwrapped).legend

    def check(self) -> str:
        self.make(world_id(NAMES[0])).reset(seed=0)
        return f"{len(NAMES)} worlds, {NAMES[0]} works"
