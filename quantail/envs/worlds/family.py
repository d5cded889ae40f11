"""The family of the tabular worlds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import gymnasium as gym

from quantail.distributions import ReturnDistribution
from quantail.envs.family import EnvFamily, entry_point
from quantail.envs.worlds.exact import follow
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

    def exact_returns(
        self, env: gym.Env[Any, Any], policy: Callable[[Any], int], discount: float
    ) -> Mapping[Any, Sequence[ReturnDistribution]]:
        world = cast("World", env.unwrapped)
        chosen = {state: policy(world.number(state)) for state in world.states}
        found = follow(world, chosen, discount).distributions
        actions = range(len(world.actions))
        return {world.number(state): [found[state, a] for a in actions] for state in world.states}

    def check(self) -> str:
        self.make(world_id(NAMES[0])).reset(seed=0)
        return f"{len(NAMES)} worlds, {NAMES[0]} works"
