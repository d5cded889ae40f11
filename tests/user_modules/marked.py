"""Leaves a mark when its code runs; has an environment and a risk measure."""

import os
from pathlib import Path

import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

Path(os.environ["MARK"]).touch()


def beta(tau):
    return tau**2


gym.register("Marked-v0", entry_point=CartPoleEnv, max_episode_steps=200)
