"""Functions of the public API that put packages together."""

from quantail import envs
from quantail.config import Config, require_config
from quantail.envs.adapt import Adapter
from quantail.recipes import configure


def make(env: envs.EnvSource, config: Config | None = None, render_mode: str | None = None) -> Adapter:
    """Make an environment with the preprocessing of a configuration, by default that of its preset.

    Its observations can be passed to `agent.act`, and the actions of `agent.act` to its `step`.
    """
    chosen = configure(env) if config is None else require_config(config)
    return envs.make(env, chosen.environment, render_mode)
