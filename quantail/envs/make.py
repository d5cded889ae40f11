"""Make environments for agents and for people, from an id or a function."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium.wrappers import TimeLimit

from quantail.envs.adapt import Adapter
from quantail.envs.config import EnvironmentConfig
from quantail.envs.families import all_families, configured, locate
from quantail.envs.family import EnvFamily
from quantail.envs.limits import set_limit
from quantail.envs.source import Env, EnvSource, name_of
from quantail.errors import QuantailError, reason_of
from quantail.extras import require_extra
from quantail.spaces import ActionSpec, ObservationSpec


def make(
    source: EnvSource,
    config: EnvironmentConfig,
    render_mode: str | None = None,
    *,
    conditions: Mapping[str, Any] | None = None,
) -> Adapter:
    """Make an environment with the preprocessing of a configuration.

    Its observations can be passed to `agent.act`, and the actions of `agent.act` to its `step`.
    `conditions` are those of a protocol, which replace settings of the environment's family.
    """
    family, identifier = locate(source)
    family = configured(family, config)
    if conditions is not None:
        family = family.under(conditions)
    return _build(source, family, identifier, render_mode, config.stack, limit=config.max_episode_steps)


def make_player(source: EnvSource, render_mode: str | None = None) -> Adapter:
    """Make an environment for a human player, in ALE without repeat, no-ops and sticky actions."""
    family, identifier = locate(source)
    return _build(source, family.for_human(), identifier, render_mode)


def player_conditions(source: EnvSource) -> dict[str, Any]:
    """Return everything that a recorded game depends on besides its seed and actions."""
    family, identifier = locate(source)
    return {"env": name_of(source)} | family.human.conditions(identifier)


def specs_of(env: Adapter) -> tuple[ObservationSpec, ActionSpec]:
    """Return the observation and action specs of an environment."""
    return env.spec_of_observation, env.actions


def _build(
    source: EnvSource,
    family: EnvFamily,
    identifier: str,
    render_mode: str | None,
    stack: int = 1,
    limit: int = 0,
) -> Adapter:
    name = name_of(source)
    if callable(source):
        env = _call(source, name)
        family = next((one for one in all_families() if one.owns(env)), family)
        env = TimeLimit(env, limit) if limit else env
    else:
        env = _make(family, identifier, name, render_mode)
        env = set_limit(env, limit) if limit else env
    return Adapter(env, stack, name, family)


def _make(family: EnvFamily, identifier: str, name: str, render_mode: str | None) -> Env:
    if family.extra:
        require_extra(family.extra, name)
    try:
        env = family.make(identifier, render_mode)
    except Exception as error:
        raise QuantailError(
            f"{name} cannot be made by the environment family {family.name}: {reason_of(error)}."
        ) from error
    if not isinstance(env, gym.Env):
        raise QuantailError(
            f"the environment family {family.name} made {type(env).__name__} for {name}, "
            "not a Gymnasium environment."
        )
    return env


def _call(source: Any, name: str) -> Env:
    try:
        env = source()
    except Exception as error:
        raise QuantailError(f"{name} cannot be made: {error}") from error
    if not isinstance(env, gym.Env):
        raise QuantailError(f"{name} returned {type(env).__name__}, not a Gymnasium environment.")
    return env
