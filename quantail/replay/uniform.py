"""Uniform sampling from the replay buffer."""

import numpy as np

from quantail.replay.frames import Index
from quantail.replay.sampler import CanStart, Sampler


class UniformSampler(Sampler):
    """Sample every stored step with the same probability."""

    def sample(self, count: int, can_start: CanStart) -> tuple[Index, Index]:
        oldest = self.store.oldest
        sizes = self.store.written - oldest
        edges = np.cumsum(sizes)
        index = self.generator.integers(edges[-1], size=count)
        env = np.searchsorted(edges, index, side="right")
        return env, oldest[env] + index - (edges - sizes)[env]
