"""A shop that observes arrays of all kinds and does not allow every action."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

ACTIONS = (3, 2)


class Shop(gym.Env):
    """Sell from several lots at several prices; an action that is not allowed raises an error.

    The mask is in `info`, or an entry of the observation. No action is allowed once the shop is closed.
    """

    def __init__(self, mask_in="info"):
        self.mask_in = mask_in
        self.action_space = spaces.MultiDiscrete(ACTIONS)
        entries = {
            "shelf": spaces.Box(0, 255, (12, 12, 3), np.uint8),
            "today": spaces.Tuple(
                (spaces.Box(-np.inf, np.inf, (3,), np.float64), spaces.Discrete(7, start=1))
            ),
            "doors": spaces.MultiBinary(4),
            "lots": spaces.MultiDiscrete([3, 4]),
        }
        if mask_in == "observation":
            entries["action_mask"] = spaces.MultiBinary(6)
        self.observation_space = spaces.Dict(entries)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.look(over=False)

    def step(self, action):
        assert self.allowed[np.ravel_multi_index(tuple(action), ACTIONS)], "that is not allowed"
        over = bool(self.np_random.random() < 0.05)
        reward = float(action[1] - action[0] / 2 + self.np_random.normal())
        observation, info = self.look(over)
        return observation, reward, over, False, info

    def look(self, over):
        draw = self.np_random
        self.allowed = draw.random(6) < 0.4
        self.allowed[draw.integers(6)] = True
        if over:
            self.allowed[:] = False
        observation = {
            "shelf": draw.integers(0, 256, (12, 12, 3)).astype(np.uint8),
            "today": (draw.normal(size=3), int(draw.integers(1, 8))),
            "doors": draw.integers(0, 2, 4).astype(np.int8),
            "lots": draw.integers(0, (3, 4)),
        }
        mask = self.allowed.astype(np.int8)
        if self.mask_in == "observation":
            return observation | {"action_mask": mask}, {}
        return observation, {"action_mask": mask}


gym.register("Shop-v0", entry_point=Shop, max_episode_steps=30)
gym.register("ShopWithEntry-v0", entry_point=lambda: Shop("observation"), max_episode_steps=30)
