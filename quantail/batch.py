"""The batch of transitions that replay gives to the learner."""

from dataclasses import dataclass

import torch
from torch import Tensor

from quantail.spaces import Observation, to_device


@dataclass(frozen=True)
class Batch:
    """Transitions for an update. The first axis of all tensors is the batch, of size B.

    Attributes:
        observations: The observations, [B, ...] in the environment's dtype, or a dict of such tensors by
            path.
        actions: The actions, [B] int64.
        rewards: The n-step returns, [B] float32.
        discounts: γⁿ, or 0 where the episode ended, [B] float32.
        next_observations: The observations after n steps, from which the target bootstraps.
        weights: Importance weights, at most 1, [B] float32; all 1 for uniform sampling.
        indices: Positions in the replay buffer, where the priorities of the transitions belong, [B]
            int64.
        masks: The actions that are allowed at the observation, [B, A] bool.
        next_masks: The same at the next observation.
    """

    observations: Observation
    actions: Tensor  # [B] int64
    rewards: Tensor  # [B] float32: the n-step return
    discounts: Tensor  # [B] float32: γⁿ, or 0 where the episode ended
    next_observations: Observation  # after n steps: those from which the target bootstraps
    weights: Tensor  # [B] float32: importance weights, at most 1; all 1 for uniform sampling
    indices: Tensor  # [B] int64: flat positions in the replay buffer's concatenated rings
    masks: Tensor | None = None  # [B, A] bool: the actions that are allowed at the observation
    next_masks: Tensor | None = None  # [B, A] bool: the same at the next observation

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device, or the batch itself if it is there already."""
        if device == self.actions.device:
            return self
        overlap = device.type != "cpu"  # the CPU may read a copy at once, so it must be complete
        parts = {name: part for name, part in vars(self).items() if part is not None}
        return Batch(
            **{name: to_device(part, device, non_blocking=overlap) for name, part in parts.items()}
        )
