"""Batches of n-step transitions, rebuilt from the stored frames when they are sampled."""

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quantail.batch import Batch
from quantail.errors import QuantailError
from quantail.replay.frames import Index
from quantail.replay.sampler import Sampler
from quantail.replay.store import FINAL, TERMINAL, TRUNCATED, ReplayStore
from quantail.spaces import Array, LeafSpec, map_leaves, row_of, to_tensors

MAX_TRIES = 1000


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

    def sample(self, importance: float = 1.0) -> Batch:
        """Sample a batch; `importance` is β, the exponent of the importance weights."""
        env, step = self.sample_indices(self.batch_size)
        weights = self.sampler.weights(self.store.indices(env, step), importance)
        return self.build_batch(env, step, weights)

    def update_priorities(self, indices: Tensor, priorities: Tensor) -> None:
        """Set the priorities [B] of the transitions at the indices [B] of their batch."""
        self.sampler.update_priorities(indices.cpu().numpy(), priorities)

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
        ahead = np.arange(self.n_step)[:, None]
        at = (step + ahead) % store.length  # [n, B]
        flags = store.flags[env, at]
        active = np.ones(at.shape, bool)  # the n-step return has not ended before
        np.logical_and.accumulate((flags[:-1] & (TERMINAL | TRUNCATED)) == 0, axis=0, out=active[1:])
        powers = self.discount ** np.arange(self.n_step + 1)
        scale = powers[:-1, None].astype(np.float32)
        rewards = np.where(active, scale * store.rewards[env, at], np.float32(0)).sum(axis=0)
        count = active.sum(axis=0)  # of rewards
        terminal = (flags[count - 1, np.arange(len(step))] & TERMINAL) > 0
        end = step + count - terminal  # the step of the bootstrap observation
        discounts = np.where(terminal, 0, powers[count]).astype(np.float32)
        size = len(step)
        both = map_leaves(partial(_empty, count=2 * size), store.spec.tree)
        store.stacks(np.concatenate([env, env]), np.concatenate([step, end]), both)
        here, after = None, None
        if store.num_masked:
            here = torch.from_numpy(store.masks_at(env, step))
            after = torch.from_numpy(store.masks_at(env, end))
        return Batch(
            observations=to_tensors(row_of(both, slice(size))),
            actions=torch.from_numpy(store.actions[env, step % store.length].astype(np.int64)),
            rewards=torch.from_numpy(rewards),
            discounts=torch.from_numpy(discounts),
            next_observations=to_tensors(row_of(both, slice(size, None))),
            weights=torch.ones(size) if weights is None else torch.from_numpy(weights),
            indices=torch.from_numpy(store.indices(env, step)),
            masks=here,
            next_masks=after,
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


def _empty(leaf: LeafSpec, count: int) -> Array:
    """Return arrays for as many observations, whose content is not set."""
    return np.empty((count, *leaf.input_shape), leaf.dtype)
