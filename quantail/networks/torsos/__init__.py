"""Torsos ψ: from a batch of observations to a batch of feature vectors."""

from quantail.networks.torsos.base import NoConfig, Torso
from quantail.networks.torsos.cnns import MinAtarCNN, NatureCNN
from quantail.networks.torsos.impala import ImpalaCNN
from quantail.networks.torsos.inputs import ImageInput, VectorInput, image_shape, require_images
from quantail.networks.torsos.mlp import MLP
from quantail.spaces import ObservationSpec

TORSOS: dict[str, type[Torso]] = {
    "nature": NatureCNN,
    "minatar": MinAtarCNN,
    "impala": ImpalaCNN,
    "mlp": MLP,
}


def auto_torso(observation: ObservationSpec) -> str:
    """Return the name of the torso for an observation: by its kind, and for images by their size."""
    if not observation.is_image:
        return "mlp"
    _, height, width = image_shape(observation)
    return "nature" if min(height, width) >= NatureCNN.smallest else "minatar"


__all__ = [
    "MLP",
    "TORSOS",
    "ImageInput",
    "ImpalaCNN",
    "MinAtarCNN",
    "NatureCNN",
    "NoConfig",
    "Torso",
    "VectorInput",
    "auto_torso",
    "image_shape",
    "require_images",
]
