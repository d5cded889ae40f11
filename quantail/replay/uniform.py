"""Uniform sampling of n-step transitions."""

import numpy as np
import torch
from numpy.typing import NDArray

from quantail.errors import QuantailError
from quantail.learning.batch import Batch
from quantail.replay.store import FINAL, TERMINAL, TRUNCATED, Index, ReplayStore


class UniformReplay:
    """Draws batches, each transition of the store as likely as any other."""

    def __init__(
        self,
        store: ReplayStore,
        batch_size: int,
        n_step: int,
        discount: float,
        generator: np.random.Generator,
    ) -> None:
        self.store = store
        self.n_step = n_step
        self.discount = discount
        self.generator = generator
        shape = (batch_size, *store.spec.input_shape)
        kind = torch.from_numpy(np.zeros(0, store.spec.dtype)).dtype
        self._observations = torch.zeros(shape, dtype=kind)
        self._next_observations = torch.zeros(shape, dtype=kind)

    def sample(self) -> Batch:
        """A batch. Its observations live in buffers that the next call overwrites."""
        env, place = self._draw(len(self._observations))
        return self.gather(env, place)

    def gather(self, env: Index, place: Index) -> Batch:
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
        store.stacks(env, place, self._observations.numpy()[:size])
        store.stacks(env, end, self._next_observations.numpy()[:size])
        return Batch(
            observations=self._observations[:size],
            actions=torch.from_numpy(store.actions[env, place % store.length].astype(np.int64)),
            rewards=torch.from_numpy(rewards),
            discounts=torch.from_numpy(discounts),
            next_observations=self._next_observations[:size],
        )

    def can_start(self, env: Index, place: Index) -> NDArray[np.bool_]:
        """Whether a whole transition starts at each of these places of the rings."""
        store = self.store
        valid: NDArray[np.bool_] = (store.flags_at(env, place) & FINAL) == 0
        valid &= store.stack_is_whole(env, place)
        # The n-step return must have ended, or its bootstrap frame must be there.
        ended = np.zeros(len(place), bool)
        for k in range(self.n_step):
            known = place + k < store.written[env]
            flags = store.flags_at(env, place + k)
            ended |= known & ((flags & (TERMINAL | TRUNCATED)) > 0)
        valid &= ended | (place + self.n_step < store.written[env])
        return valid

    def _draw(self, count: int) -> tuple[Index, Index]:
        """Places drawn uniformly from those where a transition starts, by rejection."""
        store = self.store
        oldest = store.oldest
        sizes = store.written - oldest
        edges = np.cumsum(sizes)
        env, place = np.zeros(count, np.int64), np.zeros(count, np.int64)
        missing = np.arange(count)
        for _ in range(1000):
            drawn = self.generator.integers(edges[-1], size=len(missing)) if edges[-1] else missing
            env[missing] = np.searchsorted(edges, drawn, side="right").clip(max=store.envs - 1)
            chosen = env[missing]
            place[missing] = oldest[chosen] + drawn - (edges - sizes)[chosen]
            missing = missing[~self.can_start(chosen, place[missing])]
            if not len(missing):
                return env, place
        raise QuantailError(
            f"the replay holds {len(store)} steps and no whole transition: "
            "raise learn_start or replay_capacity."
        )
