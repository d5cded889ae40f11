"""All environments of Gymnasium that no other family recognises, and those that functions make."""

import gymnasium as gym

from quantail.envs.family import EnvFamily


class Gymnasium(EnvFamily):
    """The fallback: any id that is registered with Gymnasium."""

    title = "Gymnasium environments"
    preset = "small"

    def recognises(self, env: str) -> bool:
        return env in gym.registry

    def check(self) -> str:
        self.make("CartPole-v1").reset(seed=0)
        return f"{gym.__version__}, CartPole-v1 works"
