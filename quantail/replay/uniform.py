"""Uniform sampling."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from quantail.replay.frames import Array, Index
from quantail.replay.store import ReplayStore


class UniformSampler:
    """Each place of the store is as likely as any other."""

    def __init__(self, store: ReplayStore, generator: np.random.Generator) -> None:
        self.store = store
        self.generator = generator

    def draw(self, count: int, can_start: object) -> tuple[Index, Index]:
        oldest = self.store.oldest
        sizes = self.store.written - oldest
        edges = np.cumsum(sizes)
        drawn = self.generator.integers(edges[-1], size=count)
        env = np.searchsorted(edges, drawn, side="right")
        return env, oldest[env] + drawn - (edges - sizes)[env]

    def weights(self, env: Index, place: Index, importance: float) -> NDArray[np.float32]:
        return np.ones(len(place), np.float32)

    def learned(self, env: Index, place: Index, priorities: Tensor) -> None:
        pass

    def arrays(self) -> dict[str, Array]:
        return {}

    def restore(self, arrays: dict[str, Array]) -> None:
        pass
