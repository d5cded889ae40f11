"""Proportional prioritized sampling (Schaul et al. 2016)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from quantail.errors import DIVERGED, QuantailError
from quantail.parts import Group
from quantail.replay.frames import Array, Index
from quantail.replay.sampler import CanStart, Sampler
from quantail.replay.store import ReplayStore
from quantail.replay.sum_tree import SumTree
from quantail.schedules import linear
from quantail.settings import PRIORITIZED, setting
from quantail.stateful import State, require_keys

MIN_PRIORITY = 1e-6  # added to every priority, so that every transition can be sampled again


@dataclass(frozen=True)
class PrioritizedConfig(Group):
    """The exponents of priorities and importance weights."""

    priority_exponent: float = setting(
        0.6,
        "exponent of the priorities (alpha); 0 is uniform sampling",
        source=PRIORITIZED,
        least=0,
        most=1,
    )
    importance_start: float = setting(
        0.4,
        "initial exponent of the importance weights (beta); 1 corrects the sampling bias fully",
        source=PRIORITIZED,
        least=0,
        most=1,
    )
    importance_steps: int = setting(
        50_000_000,
        "number of steps over which that exponent increases to 1; by default the length of the run",
        unit="steps",
        source=PRIORITIZED,
        least=0,
    )


class PrioritizedSampler(Sampler):
    """Sample transitions in proportion to priorityᵅ. New ones get the largest priority seen so far."""

    Config = PrioritizedConfig
    config: PrioritizedConfig

    def __init__(
        self, store: ReplayStore, generator: np.random.Generator, config: PrioritizedConfig
    ) -> None:
        super().__init__(store, generator, config)
        self.exponent = config.priority_exponent
        self.tree = SumTree(store.num_envs * store.length)
        self.max_priority = 1.0
        self._known = np.zeros(store.num_envs, np.int64)  # per environment, steps that are in the tree

    @staticmethod
    def bytes_needed(capacity: int) -> int:
        """Return the memory of the sum tree for this many steps."""
        return SumTree.bytes_needed(capacity)

    def sample(self, count: int, can_start: CanStart) -> tuple[Index, Index]:
        self._update_tree(can_start)
        if not self.tree.total:  # no transition is complete yet, so `can_start` rejects any step
            return np.zeros(count, np.int64), np.full(count, self.store.oldest[0])
        leaf = self.tree.find(self.generator.random(count) * self.tree.total)
        env, at = leaf // self.store.length, leaf % self.store.length
        oldest = self.store.oldest[env]
        return env, oldest + (at - oldest) % self.store.length

    def importance(self, steps: int) -> float:
        """Return β, which rises linearly from `importance_start` to 1."""
        return linear(steps, self.config.importance_start, 1.0, 0, self.config.importance_steps)

    def weights(self, indices: Index, importance: float) -> NDArray[np.float32]:
        """Return (N P(i))^−β divided by its maximum over the batch, so N and the total cancel."""
        probabilities = self.tree.leaves[indices]
        weights: NDArray[np.float32] = ((probabilities / probabilities.min()) ** -importance).astype(
            np.float32
        )
        return weights

    def update_priorities(self, indices: Index, priorities: Tensor) -> None:
        raised = priorities.cpu().double().numpy() + MIN_PRIORITY
        if not np.isfinite(raised).all():
            raise QuantailError(f"the loss of a transition was not finite: {DIVERGED}")
        self.max_priority = max(self.max_priority, float(raised.max()))
        # A step that has overwritten one of the batch keeps its weight 0 if it starts no transition.
        active = self.tree.leaves[indices] > 0
        self.tree.set(indices[active], raised[active] ** self.exponent)

    def state_dict(self) -> dict[str, Array]:
        return {
            "leaves": self.tree.leaves.copy(),
            "known": self._known.copy(),
            "largest": np.array([self.max_priority]),
        }

    def load_state_dict(self, state: State) -> None:
        kinds = self.state_dict()
        require_keys(state, kinds)
        for name, kind in kinds.items():
            found = state[name]
            if (found.shape, found.dtype) != (kind.shape, kind.dtype):
                raise ValueError(
                    f"{name} is {found.dtype} of shape {found.shape}, and it takes {kind.dtype} of "
                    f"shape {kind.shape}"
                )
        self._check(state)
        self.tree.set(np.arange(self.tree.size), state["leaves"])
        self.max_priority = float(state["largest"][0])
        self._known[:] = state["known"]

    def check(self) -> None:
        self._check(self.state_dict())

    def _check(self, state: State) -> None:
        """Raise an error for values that this sampler cannot have with its store."""
        limits = {"leaves": np.inf, "largest": np.inf, "known": self.store.written}
        for name, most in limits.items():
            possible = np.isfinite(state[name]) & (state[name] >= 0) & (state[name] <= most)
            if not possible.all():
                raise ValueError(f"{name} cannot be {state[name][~possible][0]}")

    def _update_tree(self, can_start: CanStart) -> None:
        """Give newly complete transitions the largest priority, and overwritten ones weight zero.

        Transitions become complete in the order in which they were written, except final frames. The
        oldest ones are lost when the ring overwrites the frames of their stacks.
        """
        store = self.store
        oldest, written = store.oldest, store.written
        begin = np.maximum(self._known, oldest)
        env, step = _ranges(begin, written - begin)
        complete = can_start(env, step)
        self._known = begin
        np.maximum.at(self._known, env[complete], step[complete] + 1)
        stored = np.where(oldest > 0, written - oldest, 0)  # nothing is lost before a ring is full
        edge_env, edge = _ranges(oldest, np.minimum(stored, store.spec.stack - 1))
        lost = ~store.stack_is_complete(edge_env, edge)
        weights = np.where(complete, self.max_priority**self.exponent, 0.0)
        self.tree.set(
            np.concatenate([store.indices(env, step), store.indices(edge_env[lost], edge[lost])]),
            np.concatenate([weights, np.zeros(int(lost.sum()))]),
        )


def _ranges(begin: Index, count: Index) -> tuple[Index, Index]:
    """Return environments and steps: for each environment, `count` steps starting at `begin`."""
    env = np.repeat(np.arange(len(begin)), count)
    ends = np.cumsum(count)
    return env, begin[env] + np.arange(ends[-1]) - (ends - count)[env]
