"""The torso that fits an observation, with an encoder for each of its images."""

import torch
from torch import Tensor, nn

from quantail.networks.torsos.base import Torso
from quantail.networks.torsos.cnns import MinAtarCNN, NatureCNN, NatureConfig
from quantail.networks.torsos.inputs import image_shape
from quantail.networks.torsos.mlp import MLP, MLPConfig
from quantail.part_config import NoConfig
from quantail.spaces import LeafSpec, Observation, ObservationSpec, arrange, leaves_of


class AutoTorso(Torso):
    """The torso that fits the observation: by the kinds of its arrays, and for images by their size.

    Building one gives an MLP, a NatureCNN, a MinAtarCNN, or a CombinedTorso of them.
    """

    Config = MLPConfig

    def __new__(cls, observation: ObservationSpec, config: MLPConfig) -> Torso:  # type: ignore[misc]
        images = {path: leaf for path, leaf in observation.leaves.items() if _has_encoder(leaf)}
        if not images:
            return MLP(observation, config)
        if len(observation.leaves) > 1:
            return CombinedTorso(observation, config)
        (leaf,) = images.values()
        if min(image_shape(leaf)[1:]) >= NatureCNN.smallest:
            return NatureCNN(observation, NatureConfig())
        return MinAtarCNN(observation, NoConfig())


class CombinedTorso(Torso):
    """A CNN for each image, one MLP for all other arrays together, and their features in a row."""

    Config = MLPConfig

    def __init__(self, observation: ObservationSpec, config: MLPConfig) -> None:
        super().__init__(observation, config)
        images = {path: leaf for path, leaf in observation.leaves.items() if _has_encoder(leaf)}
        others = {path: leaf for path, leaf in observation.leaves.items() if path not in images}
        self.paths = [[path] for path in images] + [list(others)] * bool(others)
        self.encoders = nn.ModuleList(
            AutoTorso(ObservationSpec({path: observation.leaves[path] for path in paths}), config)
            for paths in self.paths
        )
        parts: list[Torso] = list(self.encoders)  # type: ignore[arg-type]
        self.num_features = sum(part.num_features for part in parts)
        self.nonnegative = all(part.nonnegative for part in parts)

    def forward(self, observations: Observation) -> Tensor:
        leaves = leaves_of(observations)
        features = [
            encoder(arrange({path: leaves[path] for path in paths}))
            for encoder, paths in zip(self.encoders, self.paths, strict=True)
        ]
        return torch.cat(features, dim=1)

    def use_kernels(self) -> bool:
        used = [encoder.use_kernels() for encoder in self.encoders]  # type: ignore[operator]
        return any(used)

    def use_dense_products(self) -> None:
        for encoder in self.encoders:
            encoder.use_dense_products()  # type: ignore[operator]


def _has_encoder(leaf: LeafSpec) -> bool:
    """Return whether an array is an image that is large enough for a CNN."""
    return leaf.is_image and min(image_shape(leaf)[1:]) >= MinAtarCNN.smallest
