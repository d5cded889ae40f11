"""The batch of transitions that replay gives to the learner."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Transitions for an update, first axis the batch. Observations keep the environment's dtype.

    A batch owns its memory, and its `indices` are where the priorities of its transitions belong.
    """

    observations: Tensor
    actions: Tensor  # [B] int64
    rewards: Tensor  # [B] float32: the n-step return
    discounts: Tensor  # [B] float32: γⁿ, or 0 where the episode ended
    next_observations: Tensor  # after n steps: those from which the target bootstraps
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
        return Batch(**{name: part.to(device, non_blocking=overlap) for name, part in parts.items()})
