"""Functions of the public API that put packages together."""

from quantail import envs
from quantail.config import Config, require_config
from quantail.envs.adapt import Adapter
from quantail.recipes import configure


def make(env: envs.EnvSource, config: Config | None = None, render_mode: str | None = None) -> Adapter:
    """Make an environment with the preprocessing of a configuration.

        env = quantail.make("CartPole-v1", agent.config)
        observation, _ = env.reset(seed=0)
        observation, reward, terminated, truncated, _ = env.step(agent.act(observation))

    Args:
        env: The id of a Gymnasium environment, or a function that makes one.
        config: The configuration, such as `agent.config`; by default that of the environment's preset.
        render_mode: Gymnasium's render mode, such as "rgb_array".

    Returns:
        An environment with Gymnasium's `reset`, `step`, `render` and `close`. Its observations, stacked
        if the configuration says so, can be passed to `agent.act`.
    """
    chosen = configure(env) if config is None else require_config(config)
    return envs.make(env, chosen.environment, render_mode)
