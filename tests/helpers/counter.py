"""A small environment that counts its steps."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Counter(gym.Env):
    """Pays 1 per step for ten steps; every third step is a lap."""

    observation_space = spaces.Box(0, 10, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        over = self.count == 10
        return np.full(1, self.count, np.float32), 1.0, over, False, {"lap": self.count % 3 == 0}
