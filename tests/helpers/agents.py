"""An untrained agent, and an environment whose episodes never end."""

import gymnasium as gym
import numpy as np

from quantail.agents.agent import Agent
from quantail.envs import make, specs_of
from quantail.recipes import compose
from quantail.risk import Neutral
from tests.helpers.configs import build_network


def agent(env="CartPole-v1", preset="small", **changes):
    settings = compose(preset, changes)
    spec, actions = specs_of(make(env, settings.environment))
    network = build_network(settings, spec, actions.count, seed=1)
    return Agent(network, settings, spec, actions, env, Neutral())


class Endless(gym.Env):
    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 1.0, False, False, {}
