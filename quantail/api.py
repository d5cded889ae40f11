"""Functions of the public API that put packages together."""

from quantail import envs
from quantail.envs.adapt import Adapter
from quantail.recipes import compose
from quantail.settings import Settings


def make(
    env: envs.EnvSource, settings: Settings | None = None, render_mode: str | None = None
) -> Adapter:
    """Make an environment with the preprocessing of the settings, by default those of its preset.

    Its observations can be passed to `agent.act`, and the actions of `agent.act` to its `step`.
    """
    chosen = compose(envs.find_family(env).preset, {}) if settings is None else settings
    return envs.make(env, chosen, render_mode)
