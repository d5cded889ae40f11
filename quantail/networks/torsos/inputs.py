"""First layers of torsos: observations of any dtype and layout as floats."""

import math

import torch
from torch import Tensor, nn

from quantail.errors import QuantailError
from quantail.spaces import LeafSpec, Observation, ObservationSpec, leaves_of


class ImageInput(nn.Module):
    """Images of any layout as float channels first; bytes are scaled to [0, 1] here and only here.

    `channels_last` asks for values in that order of memory while gradients are computed on a CPU: a
    convolution and its gradient then take four fifths of the time. The shape is the same.
    """

    def __init__(self, spec: LeafSpec, channels_last: bool = False) -> None:
        super().__init__()
        self.channels_last = channels_last
        self.layout, self.scale = spec.layout, spec.scale
        self.shape = image_shape(spec)

    def forward(self, observations: Tensor) -> Tensor:
        images = observations.movedim(-1, -3) if self.layout.endswith("c") else observations
        images = images.reshape(len(images), *self.shape)  # [B, stack * channels, height, width]
        if self.channels_last and images.device.type == "cpu" and torch.is_grad_enabled():
            # Bytes are moved before they become floats, and by channels: 0.3 instead of 0.9 ms.
            images = torch.stack(images.unbind(1), dim=-1).movedim(-1, 1)
        floats = images.float()
        if self.scale == 1:
            return floats
        return floats * self.scale if floats is images else floats.mul_(self.scale)


class VectorInput(nn.Module):
    """Observations of any shape as a batch of float vectors; bytes are scaled to [0, 1].

    Several arrays become one vector, in their order.
    """

    def __init__(self, spec: ObservationSpec) -> None:
        super().__init__()
        self.scales = [leaf.scale for leaf in spec.leaves.values()]
        self.size = sum(math.prod(leaf.input_shape) for leaf in spec.leaves.values())

    def forward(self, observations: Observation) -> Tensor:
        leaves = leaves_of(observations).values()
        parts = [
            leaf.reshape(len(leaf), -1).to(torch.float32) * scale
            for leaf, scale in zip(leaves, self.scales, strict=True)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)  # [B, size]


def image_shape(leaf: LeafSpec) -> tuple[int, int, int]:
    """Return the channels, height and width of an image; stacked frames are channels."""
    sides = dict(zip(leaf.layout, leaf.shape, strict=True))
    return leaf.stack * sides.get("n", 1) * sides.get("c", 1), sides["h"], sides["w"]


def require_image(
    torso: str, observation: ObservationSpec, smallest: int
) -> tuple[LeafSpec, tuple[int, int, int]]:
    """Return the image of an observation, and its `image_shape`.

    Refuse observations of several arrays, vectors, and images that are too small for the torso.
    """
    leaf = observation.single(f"torso {torso}")
    if not leaf.is_image:
        raise QuantailError(f"torso {torso} takes images; the observation is a vector {leaf.shape}.")
    channels, height, width = image_shape(leaf)
    if min(height, width) < smallest:
        raise QuantailError(
            f"torso {torso} takes images of at least {smallest}×{smallest}; "
            f"the observation is {leaf.shape}."
        )
    return leaf, (channels, height, width)
