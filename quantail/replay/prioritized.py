"""Proportional prioritized sampling (Schaul et al. 2016)."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from quantail.replay.store import FINAL, Array, Index, ReplayStore
from quantail.replay.sum_tree import SumTree

LEAST = 1e-6  # added to every priority, so that nothing is forgotten for good


class PrioritizedSampler:
    """A place is drawn in proportion to priorityᵅ. What is new has the largest priority seen."""

    def __init__(self, store: ReplayStore, exponent: float, generator: np.random.Generator) -> None:
        self.store = store
        self.exponent = exponent
        self.generator = generator
        self.tree = SumTree(store.envs * store.length)
        self.largest = 1.0
        self._known = np.zeros(store.envs, np.int64)  # places that the tree has

    @staticmethod
    def bytes_needed(capacity: int) -> int:
        """What the tree takes for so many places, leaves and sums."""
        return capacity * 8 * 16 // 15

    def draw(self, count: int) -> tuple[Index, Index]:
        self._take_in()
        leaf = self.tree.find(self.generator.random(count) * self.tree.total)
        env, at = leaf // self.store.length, leaf % self.store.length
        oldest = self.store.oldest[env]
        return env, oldest + (at - oldest) % self.store.length

    def weights(self, env: Index, place: Index, importance: float) -> NDArray[np.float32]:
        """(N P(i))^−β over its largest in the batch, where N and the total cancel."""
        chances = self.tree.leaves[self._leaf(env, place)]
        weights: NDArray[np.float32] = ((chances / chances.min()) ** -importance).astype(np.float32)
        return weights

    def learned(self, env: Index, place: Index, priorities: Tensor) -> None:
        raised = priorities.double().cpu().numpy() + LEAST
        self.largest = max(self.largest, float(raised.max()))
        self.tree.set(self._leaf(env, place), raised**self.exponent)

    def arrays(self) -> dict[str, Array]:
        self._take_in()
        return {"leaves": self.tree.leaves.copy(), "largest": np.array([self.largest])}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.tree.set(np.arange(self.tree.size), arrays["leaves"])
        self.largest = float(arrays["largest"][0])
        self._known[:] = self.store.written

    def _take_in(self) -> None:
        """Give the places written since the last draw the largest priority, final frames none."""
        store, oldest = self.store, self.store.oldest
        for env in np.flatnonzero(self._known < store.written):
            place = np.arange(max(self._known[env], oldest[env]), store.written[env])
            final = (store.flags[env, place % store.length] & FINAL) > 0
            new = np.where(final, 0.0, self.largest**self.exponent)
            self.tree.set(self._leaf(np.full(len(place), env), place), new)
        self._known[:] = store.written

    def _leaf(self, env: Index, place: Index) -> Index:
        return env * self.store.length + place % self.store.length
