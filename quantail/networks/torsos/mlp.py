"""Fully connected layers for vectors."""

from dataclasses import dataclass

from torch import Tensor, nn

from quantail.networks.torsos.base import Torso
from quantail.networks.torsos.inputs import VectorInput
from quantail.settings import OURS, setting
from quantail.spaces import Observation, ObservationSpec


@dataclass(frozen=True)
class MLPConfig:
    """The layers of the mlp torso."""

    mlp_sizes: tuple[int, ...] = setting(
        (128,), "sizes of the hidden layers of the mlp torso", unit="units", source=OURS, least=1
    )


class MLP(Torso):
    """Fully connected layers, each with a ReLU; observations of any shape are flattened and joined."""

    Config = MLPConfig

    def __init__(self, observation: ObservationSpec, config: MLPConfig) -> None:
        super().__init__(observation, config)
        joined = VectorInput(observation)
        layers: list[nn.Module] = [joined]
        width = joined.size
        for size in config.mlp_sizes:
            layers += [nn.Linear(width, size), nn.ReLU()]
            width = size
        self.layers = nn.Sequential(*layers)
        self.num_features = width
        self.nonnegative = len(config.mlp_sizes) > 0  # otherwise the features are the observation

    def forward(self, observations: Observation) -> Tensor:
        features: Tensor = self.layers(observations)
        return features
