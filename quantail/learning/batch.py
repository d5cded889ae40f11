"""What replay hands to the learner."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Transitions for an update, first axis the batch. Observations keep the environment's dtype."""

    observations: Tensor
    actions: Tensor  # int64
    rewards: Tensor  # the n-step return, float32
    discounts: Tensor  # γⁿ, or 0 where the episode ended, float32
    next_observations: Tensor
    weights: Tensor  # importance weights, at most 1; 1 where all transitions are equally likely

    def to(self, device: torch.device) -> "Batch":
        if device.type == "cpu":
            return self
        parts = (getattr(self, field.name) for field in fields(self))
        return Batch(*(part.to(device, non_blocking=True) for part in parts))
