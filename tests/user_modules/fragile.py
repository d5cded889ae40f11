"""CartPole that breaks in the middle of a run, until a file is there that mends it; or that gives up."""

import os
from pathlib import Path

import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv


class Fragile(CartPoleEnv):
    steps = 0

    def step(self, action):
        Fragile.steps += 1
        if Fragile.steps > 120 and not Path(os.environ["FRAGILE_MENDED"]).exists():
            raise RuntimeError("the pole broke")
        return super().step(action)


class Quitter(CartPoleEnv):
    def step(self, action):
        raise SystemExit("no more")


gym.register("Quitter-v0", entry_point=Quitter, max_episode_steps=200)
gym.register("Fragile-v0", entry_point=Fragile, max_episode_steps=200)
