"""A slow, obvious reference implementation of n-step transitions."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class ReplayOracle:
    """Keep one whole episode: frames[t] -> actions[t], rewards[t] -> frames[t + 1]."""

    frames: list = field(default_factory=list)
    actions: list = field(default_factory=list)
    rewards: list = field(default_factory=list)
    terminal: list = field(default_factory=list)  # the bootstrap ends after step t
    final_frame: object = None  # after a truncation
    over: bool = False

    def stack(self, t, stack, shape):
        every = [*self.frames, *([self.final_frame] if self.final_frame is not None else [])]
        frames = [every[k] if k >= 0 else np.zeros(shape) for k in range(t - stack + 1, t + 1)]
        return frames[0] if stack == 1 else np.stack(frames)

    def transition(self, t, n, discount, stack, shape):
        """Return (observation, action, n-step return, discount, next observation); None if unknown."""
        total = 0.0
        for k in range(n):
            if t + k >= len(self.actions):
                if self.final_frame is not None:
                    return self._at(t, total, discount**k, len(self.actions), stack, shape)
                return None
            total += discount**k * self.rewards[t + k]
            if self.terminal[t + k]:
                return self._at(t, total, 0.0, None, stack, shape)
        end = t + n
        known = len(self.frames) + (self.final_frame is not None)
        if end >= known:
            return None
        return self._at(t, total, discount**n, end, stack, shape)

    def _at(self, t, total, discount, end, stack, shape):
        following = None if end is None else self.stack(end, stack, shape)
        return self.stack(t, stack, shape), self.actions[t], total, discount, following
