"""Batches of n-step transitions, rebuilt from the frames when they are drawn."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quantail.errors import QuantailError
from quantail.learning.batch import Batch
from quantail.replay.frames import Array, Index
from quantail.replay.store import FINAL, TERMINAL, TRUNCATED, ReplayStore

TRIES = 1000
CanStart = Callable[[Index, Index], NDArray[np.bool_]]


class Sampler(Protocol):
    """The law by which places of the store are drawn."""

    def draw(self, count: int, can_start: CanStart) -> tuple[Index, Index]:
        """Environments and places, of which some may have no whole transition."""

    def weights(self, env: Index, place: Index, importance: float) -> NDArray[np.float32]:
        """Importance weights of drawn places, the largest of them 1."""

    def learned(self, env: Index, place: Index, priorities: Tensor) -> None:
        """What an update made of the drawn places."""

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint must keep."""

    def restore(self, arrays: dict[str, Array]) -> None:
        """The inverse of `arrays`, when the store itself is restored."""


class Replay:
    """Draws batches from a store by a sampler's law, among the places where a transition is whole."""

    def __init__(
        self, store: ReplayStore, sampler: Sampler, batch_size: int, n_step: int, discount: float
    ) -> None:
        self.store = store
        self.sampler = sampler
        self.batch_size = batch_size
        self.n_step = n_step
        self.discount = discount
        shape = (batch_size, *store.spec.input_shape)
        kind = torch.from_numpy(np.zeros(0, store.spec.dtype)).dtype
        self._observations = torch.zeros((2, *shape), dtype=kind)  # before and after
        self._drawn = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def sample(self, importance: float = 1.0) -> Batch:
        """A batch. Its observations live in buffers that the next call overwrites."""
        self._drawn = env, place = self.draw(self.batch_size)
        return self.gather(env, place, self.sampler.weights(env, place, importance))

    def learned(self, priorities: Tensor) -> None:
        """Tell the sampler what an update made of the batch drawn last."""
        self.sampler.learned(*self._drawn, priorities)

    def draw(self, count: int) -> tuple[Index, Index]:
        """Places by the sampler's law among those where a whole transition starts, by rejection."""
        env, place = np.zeros(count, np.int64), np.zeros(count, np.int64)
        missing = np.arange(count)
        for _ in range(TRIES if len(self.store) else 0):
            env[missing], place[missing] = self.sampler.draw(len(missing), self.can_start)
            missing = missing[~self.can_start(env[missing], place[missing])]
            if not len(missing):
                return env, place
        raise QuantailError(
            f"the replay holds {len(self.store)} steps and no whole transition: "
            "raise learn_start or replay_capacity."
        )

    def gather(self, env: Index, place: Index, weights: NDArray[np.float32] | None = None) -> Batch:
        """The n-step transitions that start at these places."""
        store = self.store
        rewards = np.zeros(len(place), np.float32)
        discounts = np.ones(len(place), np.float32)
        end = place.copy()  # where the bootstrap looks
        going = np.ones(len(place), bool)
        for k in range(self.n_step):
            at = (place + k) % store.length
            flags = store.flags[env, at]
            rewards += np.where(going, np.float32(self.discount**k) * store.rewards[env, at], 0)
            terminal = going & ((flags & TERMINAL) > 0)
            bootstraps = going & ~terminal
            discounts[terminal] = 0
            end[bootstraps] = place[bootstraps] + k + 1
            discounts[bootstraps] = self.discount ** (k + 1)
            going &= (flags & (TERMINAL | TRUNCATED)) == 0
        size = len(place)
        both = self._observations.flatten(0, 1)[: 2 * size]
        store.stacks(np.concatenate([env, env]), np.concatenate([place, end]), both.numpy())
        return Batch(
            observations=both[:size],
            actions=torch.from_numpy(store.actions[env, place % store.length].astype(np.int64)),
            rewards=torch.from_numpy(rewards),
            discounts=torch.from_numpy(discounts),
            next_observations=both[size:],
            weights=torch.ones(size) if weights is None else torch.from_numpy(weights),
        )

    def can_start(self, env: Index, place: Index) -> NDArray[np.bool_]:
        """Whether a whole transition starts at each of these places of the rings."""
        store = self.store
        valid: NDArray[np.bool_] = (store.flags_at(env, place) & FINAL) == 0
        valid &= store.stack_is_whole(env, place)
        # The n-step return must have ended, or its bootstrap frame must be there.
        steps, written = place[:, None] + np.arange(self.n_step), store.written[env]
        ends = (store.flags_at(env[:, None], steps) & (TERMINAL | TRUNCATED)) > 0
        ended = (ends & (steps < written[:, None])).any(axis=1)
        valid &= ended | (place + self.n_step < written)
        return valid
