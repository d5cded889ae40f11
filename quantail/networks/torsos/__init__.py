"""Torsos ψ: from a batch of observations to a batch of feature vectors."""

from quantail.networks.torsos.auto import AutoTorso, CombinedTorso
from quantail.networks.torsos.base import Torso
from quantail.networks.torsos.cnns import MinAtarCNN, NatureCNN
from quantail.networks.torsos.impala import ImpalaCNN
from quantail.networks.torsos.inputs import ImageInput, VectorInput, image_shape, require_image
from quantail.networks.torsos.mlp import MLP

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
    "CombinedTorso",
    "ImageInput",
    "ImpalaCNN",
    "MinAtarCNN",
    "NatureCNN",
    "Torso",
    "VectorInput",
    "image_shape",
    "require_image",
]
