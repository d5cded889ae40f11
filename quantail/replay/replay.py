"""Batches of n-step transitions, rebuilt from the stored frames when they are sampled."""

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

MAX_TRIES = 1000
CanStart = Callable[[Index, Index], NDArray[np.bool_]]


class Sampler(Protocol):
    """The distribution by which steps of the store are sampled."""

    def sample(self, count: int, can_start: CanStart) -> tuple[Index, Index]:
        """Sample environments and steps; some may not start a complete transition."""

    def weights(self, env: Index, step: Index, importance: float) -> NDArray[np.float32]:
        """Return the importance weights of sampled steps, normalised to a maximum of 1."""

    def update_priorities(self, env: Index, step: Index, priorities: Tensor) -> None:
        """Set the priorities of sampled steps after an update."""

    def arrays(self) -> dict[str, Array]:
        """Return the state that a checkpoint must save."""

    def restore(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned, after the store itself was restored."""


class Replay:
    """Sample batches of complete n-step transitions from a store, in proportions set by a sampler."""

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
        self._observations = torch.zeros((2, *shape), dtype=kind)  # observations, next observations
        self._last_indices = np.zeros(0, np.int64), np.zeros(0, np.int64)  # of the last batch

    def sample(self, importance: float = 1.0) -> Batch:
        """Sample a batch. Its observations are in buffers that the next call overwrites.

        `importance` is β, the exponent of the importance weights.
        """
        self._last_indices = env, step = self.sample_indices(self.batch_size)
        return self.build_batch(env, step, self.sampler.weights(env, step, importance))

    def update_priorities(self, priorities: Tensor) -> None:
        """Set the priorities of the transitions in the last sampled batch."""
        self.sampler.update_priorities(*self._last_indices, priorities)

    def sample_indices(self, count: int) -> tuple[Index, Index]:
        """Sample the environments and steps of complete transitions, by rejection."""
        env, step = np.zeros(count, np.int64), np.zeros(count, np.int64)
        missing = np.arange(count)
        for _ in range(MAX_TRIES if len(self.store) else 0):
            env[missing], step[missing] = self.sampler.sample(len(missing), self.can_start)
            missing = missing[~self.can_start(env[missing], step[missing])]
            if not len(missing):
                return env, step
        raise QuantailError(
            f"the replay buffer holds {len(self.store)} steps and no complete transition: "
            "raise learning_starts or buffer_size."
        )

    def build_batch(self, env: Index, step: Index, weights: NDArray[np.float32] | None = None) -> Batch:
        """Return the n-step transitions that start at these steps."""
        store = self.store
        rewards = np.zeros(len(step), np.float32)
        discounts = np.ones(len(step), np.float32)
        end = step.copy()  # the step of the bootstrap observation
        active = np.ones(len(step), bool)  # the n-step return has not ended yet
        for k in range(self.n_step):
            at = (step + k) % store.length
            flags = store.flags[env, at]
            rewards += np.where(active, np.float32(self.discount**k) * store.rewards[env, at], 0)
            terminal = active & ((flags & TERMINAL) > 0)
            bootstraps = active & ~terminal
            discounts[terminal] = 0
            end[bootstraps] = step[bootstraps] + k + 1
            discounts[bootstraps] = self.discount ** (k + 1)
            active &= (flags & (TERMINAL | TRUNCATED)) == 0
        size = len(step)
        both = self._observations.flatten(0, 1)[: 2 * size]
        store.stacks(np.concatenate([env, env]), np.concatenate([step, end]), both.numpy())
        return Batch(
            observations=both[:size],
            actions=torch.from_numpy(store.actions[env, step % store.length].astype(np.int64)),
            rewards=torch.from_numpy(rewards),
            discounts=torch.from_numpy(discounts),
            next_observations=both[size:],
            weights=torch.ones(size) if weights is None else torch.from_numpy(weights),
        )

    def can_start(self, env: Index, step: Index) -> NDArray[np.bool_]:
        """Return whether a complete transition starts at each of these steps."""
        store = self.store
        valid: NDArray[np.bool_] = (store.flags_at(env, step) & FINAL) == 0
        valid &= store.stack_is_complete(env, step)
        # Either the episode ends within n steps, or the frame of the bootstrap observation is stored.
        following, written = step[:, None] + np.arange(self.n_step), store.written[env]
        ends = (store.flags_at(env[:, None], following) & (TERMINAL | TRUNCATED)) > 0
        ended = (ends & (following < written[:, None])).any(axis=1)
        valid &= ended | (step + self.n_step < written)
        return valid
