"""Convolutions for images."""

from typing import ClassVar

from torch import Tensor, nn

from quantail.networks.kernels import applies, load_kernels
from quantail.networks.torsos.base import Torso
from quantail.networks.torsos.inputs import ImageInput, require_images
from quantail.part_config import NoConfig
from quantail.spaces import ObservationSpec


class NatureCNN(Torso):
    """The three convolutions of DQN (Mnih et al. 2015)."""

    smallest: ClassVar[int] = 36  # sides of an image, at least
    nonnegative = True

    def __init__(self, observation: ObservationSpec, config: NoConfig) -> None:
        super().__init__(observation, config)
        channels, height, width = require_images("nature", observation, self.smallest)
        self.layers = nn.Sequential(
            ImageInput(observation),
            nn.Conv2d(channels, 32, 8, stride=4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.num_features = 64 * _nature_size(height) * _nature_size(width)

    def forward(self, observations: Tensor) -> Tensor:
        features: Tensor = self.layers(observations)
        return features


class MinAtarCNN(Torso):
    """The one convolution of MinAtar's own DQN (Young and Tian 2019)."""

    smallest: ClassVar[int] = 3  # sides of an image, at least
    nonnegative = True

    def __init__(self, observation: ObservationSpec, config: NoConfig) -> None:
        super().__init__(observation, config)
        channels, height, width = require_images("minatar", observation, self.smallest)
        self.layers = nn.Sequential(
            ImageInput(observation), nn.Conv2d(channels, 16, 3), nn.ReLU(), nn.Flatten()
        )
        self.num_features = 16 * (height - 2) * (width - 2)
        self.compiled = False  # whether the convolution runs in a compiled kernel

    def forward(self, observations: Tensor) -> Tensor:
        if self.compiled and applies(observations):
            images, layer = self.layers[0](observations), self.layers[1]
            convolved: Tensor = load_kernels().rectified_convolution(images, layer.weight, layer.bias)
            return convolved
        features: Tensor = self.layers(observations)
        return features

    def use_kernels(self) -> bool:
        self.compiled = load_kernels() is not None
        return self.compiled

    def use_dense_products(self) -> None:
        self.compiled = False


def _nature_size(side: int) -> int:
    for kernel, stride in ((8, 4), (4, 2), (3, 1)):
        side = (side - kernel) // stride + 1
    return side
