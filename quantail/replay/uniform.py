"""Uniform sampling from the replay buffer."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from quantail.replay.frames import Array, Index
from quantail.replay.store import ReplayStore


class UniformSampler:
    """Sample every stored step with the same probability."""

    def __init__(self, store: ReplayStore, generator: np.random.Generator) -> None:
        self.store = store
        self.generator = generator

    def sample(self, count: int, can_start: object) -> tuple[Index, Index]:
        oldest = self.store.oldest
        sizes = self.store.written - oldest
        edges = np.cumsum(sizes)
        index = self.generator.integers(edges[-1], size=count)
        env = np.searchsorted(edges, index, side="right")
        return env, oldest[env] + index - (edges - sizes)[env]

    def weights(self, indices: Index, importance: float) -> NDArray[np.float32]:
        return np.ones(len(indices), np.float32)

    def update_priorities(self, indices: Index, priorities: Tensor) -> None:
        pass

    def arrays(self) -> dict[str, Array]:
        return {}

    def restore(self, arrays: dict[str, Array]) -> None:
        pass
