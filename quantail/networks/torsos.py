"""Torsos ψ: from a batch of observations to a batch of feature vectors.

A torso says whether its features are `nonnegative`. Only then may a head use the product that skips
zeros (see `products.py`), which is wrong for negative features.
"""

import torch
from torch import Tensor, nn

from quantail.errors import QuantailError
from quantail.spaces import ObservationSpec


class ImageInput(nn.Module):
    """Images of any layout as float channels first; bytes are scaled to [0, 1] here and only here."""

    def __init__(self, spec: ObservationSpec) -> None:
        super().__init__()
        self.layout, self.stack = spec.layout, spec.stack
        self.scale = spec.scale
        sides = dict(zip(spec.layout, spec.shape, strict=True))
        self.shape = (spec.stack * sides.get("c", 1), sides["h"], sides["w"])

    def forward(self, observations: Tensor) -> Tensor:
        images = observations.to(torch.float32)
        if self.scale != 1.0:
            images = images * self.scale
        if self.layout == "hwc":
            images = images.movedim(-1, -3)
        return images.reshape(len(images), *self.shape)  # [batch, stack * channels, height, width]


class NatureCNN(nn.Sequential):
    """The three convolutions of DQN (Mnih et al. 2015)."""

    smallest = 36
    nonnegative = True  # ends in a ReLU

    def __init__(self, spec: ObservationSpec) -> None:
        entrance = ImageInput(spec)
        channels, height, width = entrance.shape
        super().__init__(
            entrance,
            nn.Conv2d(channels, 32, 8, stride=4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.features = 64 * _nature_size(height) * _nature_size(width)


class MinAtarCNN(nn.Sequential):
    """The one convolution of MinAtar's own DQN (Young and Tian 2019)."""

    smallest = 3
    nonnegative = True  # ends in a ReLU

    def __init__(self, spec: ObservationSpec) -> None:
        entrance = ImageInput(spec)
        channels, height, width = entrance.shape
        super().__init__(entrance, nn.Conv2d(channels, 16, 3), nn.ReLU(), nn.Flatten())
        self.features = 16 * (height - 2) * (width - 2)


class MLP(nn.Sequential):
    """Fully connected layers for vectors; bytes are scaled to [0, 1]."""

    nonnegative = True  # ends in a ReLU

    def __init__(self, spec: ObservationSpec, sizes: tuple[int, ...]) -> None:
        width = 1
        for size in spec.input_shape:
            width *= size
        layers: list[nn.Module] = [VectorInput(spec)]
        for size in sizes:
            layers += [nn.Linear(width, size), nn.ReLU()]
            width = size
        super().__init__(*layers)
        self.features = width


class VectorInput(nn.Module):
    """Anything as a batch of float vectors."""

    def __init__(self, spec: ObservationSpec) -> None:
        super().__init__()
        self.scale = spec.scale

    def forward(self, observations: Tensor) -> Tensor:
        return observations.flatten(1).to(torch.float32) * self.scale


Torso = NatureCNN | MinAtarCNN | MLP


def build_torso(name: str, spec: ObservationSpec, mlp_sizes: tuple[int, ...]) -> Torso:
    """The torso of this name, or the one that fits the observation for `auto`."""
    if name == "mlp" or (name == "auto" and not spec.is_image):
        return MLP(spec, mlp_sizes)
    if not spec.is_image:
        raise QuantailError(f"torso {name} takes images; the observation is a vector {spec.shape}.")
    side = min(ImageInput(spec).shape[1:])
    if name == "auto":
        name = "nature" if side >= NatureCNN.smallest else "minatar"
    kind = NatureCNN if name == "nature" else MinAtarCNN
    if side < kind.smallest:
        raise QuantailError(
            f"torso {name} takes images of at least {kind.smallest}×{kind.smallest}; "
            f"the observation is {spec.shape}."
        )
    return kind(spec)


def _nature_size(side: int) -> int:
    for kernel, stride in ((8, 4), (4, 2), (3, 1)):
        side = (side - kernel) // stride + 1
    return side
