"""A slow, obvious reference implementation of n-step transitions."""

from dataclasses import dataclass, field

import numpy as np

from quantail.spaces import map_leaves, stack_observations


@dataclass
class ReplayOracle:
    """Keep one whole episode: frames[t] -> actions[t], rewards[t] -> frames[t + 1]."""

    frames: list = field(default_factory=list)
    actions: list = field(default_factory=list)
    rewards: list = field(default_factory=list)
    terminal: list = field(default_factory=list)  # the bootstrap ends after step t
    masks: list = field(default_factory=list)  # of every frame, also the final one
    final_frame: object = None  # after a truncation

    def stack(self, t, stack):
        every = [*self.frames, *([self.final_frame] if self.final_frame is not None else [])]
        blank = map_leaves(np.zeros_like, every[0])
        frames = [every[k] if k >= 0 else blank for k in range(t - stack + 1, t + 1)]
        return frames[0] if stack == 1 else stack_observations(frames)

    def transition(self, t, n, discount, stack):
        """Return observation, action, n-step return, discount, next observation, mask and next mask.

        None if the transition is not known yet.
        """
        total = 0.0
        for k in range(n):
            if t + k >= len(self.actions):
                if self.final_frame is not None:
                    return self._at(t, total, discount**k, len(self.actions), stack)
                return None
            total += discount**k * self.rewards[t + k]
            if self.terminal[t + k]:
                return self._at(t, total, 0.0, None, stack)
        end = t + n
        known = len(self.frames) + (self.final_frame is not None)
        if end >= known:
            return None
        return self._at(t, total, discount**n, end, stack)

    def _at(self, t, total, discount, end, stack):
        following = None if end is None else self.stack(end, stack)
        after = None if end is None else self.masks[end]
        return self.stack(t, stack), self.actions[t], total, discount, following, self.masks[t], after
