"""Convolutions for images."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from quantail.errors import QuantailError
from quantail.networks.kernels import applies, load_kernels
from quantail.networks.torsos.base import Torso
from quantail.networks.torsos.inputs import ImageInput, require_image
from quantail.part_config import NoConfig
from quantail.settings import NATURE, setting
from quantail.spaces import ObservationSpec

CONVOLUTIONS = ((8, 4), (4, 2), (3, 1))  # kernel and stride of the three layers of DQN


@dataclass(frozen=True)
class NatureConfig:
    """The width of the nature torso."""

    nature_channels: tuple[int, ...] = setting(
        (32, 64, 64), "channels of the three convolutions of the nature torso", source=NATURE, least=1
    )

    def __post_init__(self) -> None:
        if len(self.nature_channels) != len(CONVOLUTIONS):
            given = ",".join(map(str, self.nature_channels))
            raise QuantailError(
                f"nature_channels takes three whole numbers, such as 32,64,64; it is {given}."
            )


class NatureCNN(Torso):
    """The three convolutions of DQN (Mnih et al. 2015)."""

    Config = NatureConfig
    smallest: ClassVar[int] = 36  # sides of an image, at least
    nonnegative = True

    def __init__(self, observation: ObservationSpec, config: NatureConfig) -> None:
        super().__init__(observation, config)
        image, (channels, height, width) = require_image("nature", observation, self.smallest)
        layers: list[nn.Module] = [ImageInput(image, channels_last=True)]
        for outputs, (kernel, stride) in zip(config.nature_channels, CONVOLUTIONS, strict=True):
            layers += [nn.Conv2d(channels, outputs, kernel, stride=stride), nn.ReLU()]
            channels = outputs
        self.layers = nn.Sequential(*layers, nn.Flatten())
        self.num_features = channels * _nature_size(height) * _nature_size(width)

    def forward(self, observations: Tensor) -> Tensor:
        features: Tensor = self.layers(observations)
        return features


class MinAtarCNN(Torso):
    """The one convolution of MinAtar's own DQN (Young and Tian 2019)."""

    smallest: ClassVar[int] = 3  # sides of an image, at least
    nonnegative = True

    def __init__(self, observation: ObservationSpec, config: NoConfig) -> None:
        super().__init__(observation, config)
        image, (channels, height, width) = require_image("minatar", observation, self.smallest)
        self.layers = nn.Sequential(
            ImageInput(image), nn.Conv2d(channels, 16, 3), nn.ReLU(), nn.Flatten()
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
        if self.compiled:  # stored as the kernel reads it
            weight = self.get_parameter("layers.1.weight")
            weight.data = weight.data.movedim(0, -1).contiguous().movedim(-1, 0)
        return self.compiled

    def use_dense_products(self) -> None:
        self.compiled = False


def _nature_size(side: int) -> int:
    for kernel, stride in CONVOLUTIONS:
        side = (side - kernel) // stride + 1
    return side
