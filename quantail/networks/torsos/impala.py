"""The residual network of IMPALA for images."""

from dataclasses import dataclass

from torch import Tensor, nn

from quantail.networks.torsos.base import Torso
from quantail.networks.torsos.inputs import ImageInput, require_image
from quantail.parts import Group
from quantail.settings import IMPALA, setting
from quantail.spaces import ObservationSpec

CHANNELS = (16, 32, 32)  # of the three blocks, at width 1


@dataclass(frozen=True)
class ImpalaConfig(Group):
    """The width of the impala torso."""

    impala_width: int = setting(
        1, "multiplies the channels 16, 32 and 32 of the impala torso", source=IMPALA, least=1
    )


class ImpalaCNN(Torso):
    """The deep network of IMPALA (Espeholt et al. 2018, figure 3): three blocks, 15 convolutions.

    The hidden layer of the head takes the place of its dense layer.
    """

    Config = ImpalaConfig
    nonnegative = True

    def __init__(self, observation: ObservationSpec, config: ImpalaConfig) -> None:
        super().__init__(observation, config)
        image, (channels, height, width) = require_image("impala", observation, smallest=1)
        layers: list[nn.Module] = [ImageInput(image, channels_last=True)]
        for base in CHANNELS:
            layers.append(_block(channels, base * config.impala_width))
            channels = base * config.impala_width
            height, width = (height + 1) // 2, (width + 1) // 2
        self.layers = nn.Sequential(*layers, nn.ReLU(), nn.Flatten())
        self.num_features = channels * height * width

    def forward(self, observations: Tensor) -> Tensor:
        features: Tensor = self.layers(observations)
        return features


class ResidualUnit(nn.Module):
    """x + conv(ReLU(conv(ReLU(x)))), with 3×3 convolutions that keep the shape."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        residual: Tensor = self.layers(x)
        return x + residual


def _block(inputs: int, channels: int) -> nn.Sequential:
    """Return a convolution, a pooling that halves the sides (rounded up), and two residual units."""
    return nn.Sequential(
        nn.Conv2d(inputs, channels, 3, padding=1),
        nn.MaxPool2d(3, stride=2, padding=1),
        ResidualUnit(channels),
        ResidualUnit(channels),
    )
