"""Proportional prioritized sampling (Schaul et al. 2016)."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from quantail.errors import DIVERGED, QuantailError
from quantail.replay.frames import Array, Index
from quantail.replay.replay import CanStart
from quantail.replay.store import ReplayStore
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
        return SumTree.bytes_needed(capacity)

    def draw(self, count: int, can_start: CanStart) -> tuple[Index, Index]:
        self._take_in(can_start)
        if not self.tree.total:  # nothing is whole yet: any place will be found not to be
            return np.zeros(count, np.int64), np.full(count, self.store.oldest[0])
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
        raised = priorities.cpu().double().numpy() + LEAST
        if not np.isfinite(raised).all():
            raise QuantailError(f"the loss of a transition was not finite: {DIVERGED}")
        self.largest = max(self.largest, float(raised.max()))
        self.tree.set(self._leaf(env, place), raised**self.exponent)

    def arrays(self) -> dict[str, Array]:
        return {
            "leaves": self.tree.leaves.copy(),
            "known": self._known.copy(),
            "largest": np.array([self.largest]),
        }

    def restore(self, arrays: dict[str, Array]) -> None:
        self.tree.set(np.arange(self.tree.size), arrays["leaves"])
        self.largest = float(arrays["largest"][0])
        self._known[:] = arrays["known"]

    def _take_in(self, can_start: CanStart) -> None:
        """Give places whose transition has become whole the largest priority, and lost ones none.

        Places become whole in the order in which they were written, all but final frames; the oldest
        ones are lost when the ring overwrites the frames of their stacks.
        """
        store = self.store
        oldest, written = store.oldest, store.written
        begin = np.maximum(self._known, oldest)
        env, place = _runs(begin, written - begin)
        whole = can_start(env, place)
        self._known = begin
        np.maximum.at(self._known, env[whole], place[whole] + 1)
        held = np.where(oldest > 0, written - oldest, 0)  # nothing is lost before a ring is full
        edge_env, edge = _runs(oldest, np.minimum(held, store.spec.stack - 1))
        lost = ~store.stack_is_whole(edge_env, edge)
        weights = np.where(whole, self.largest**self.exponent, 0.0)
        self.tree.set(
            np.concatenate([self._leaf(env, place), self._leaf(edge_env[lost], edge[lost])]),
            np.concatenate([weights, np.zeros(int(lost.sum()))]),
        )

    def _leaf(self, env: Index, place: Index) -> Index:
        return env * self.store.length + place % self.store.length


def _runs(begin: Index, count: Index) -> tuple[Index, Index]:
    """For each environment `count` places from `begin` on, in one array."""
    env = np.repeat(np.arange(len(begin)), count)
    ends = np.cumsum(count)
    return env, begin[env] + np.arange(ends[-1]) - (ends - count)[env]
