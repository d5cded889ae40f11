"""Functions of the public API that put packages together."""

from quantail import envs
from quantail.config import Config
from quantail.envs.adapt import Adapter
from quantail.recipes import configure


def make(env: envs.EnvSource, config: Config | None = None, render_mode: str | None = None) -> Adapter:
    """Make an environment with the preprocessing of a configuration, by default that of its preset.

    Its observations can be passed to `agent.act`, and the actions of `agent.act` to its `step`.
    """
    return envs.make(env, (config or configure(env)).environment, render_mode)
