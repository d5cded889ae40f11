"""Torsos ψ: from a batch of observations to a batch of feature vectors."""

from quantail.networks.torsos.base import Torso
from quantail.networks.torsos.cnns import MinAtarCNN, NatureCNN, NatureConfig
from quantail.networks.torsos.impala import ImpalaCNN
from quantail.networks.torsos.inputs import ImageInput, VectorInput, image_shape, require_images
from quantail.networks.torsos.mlp import MLP, MLPConfig
from quantail.part_config import NoConfig
from quantail.spaces import ObservationSpec


class AutoTorso(Torso):
    """The torso that fits the observation: by its kind, and for images by their size.

    Building one gives an MLP, a NatureCNN or a MinAtarCNN.
    """

    Config = MLPConfig

    def __new__(cls, observation: ObservationSpec, config: MLPConfig) -> Torso:  # type: ignore[misc]
        if not observation.is_image:
            return MLP(observation, config)
        _, height, width = image_shape(observation)
        if min(height, width) >= NatureCNN.smallest:
            return NatureCNN(observation, NatureConfig())
        return MinAtarCNN(observation, NoConfig())


TORSOS: dict[str, type[Torso]] = {
    "auto": AutoTorso,
    "nature": NatureCNN,
    "minatar": MinAtarCNN,
    "impala": ImpalaCNN,
    "mlp": MLP,
}

__all__ = [
    "MLP",
    "TORSOS",
    "AutoTorso",
    "ImageInput",
    "ImpalaCNN",
    "MinAtarCNN",
    "NatureCNN",
    "Torso",
    "VectorInput",
    "image_shape",
    "require_images",
]
