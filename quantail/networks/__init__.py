"""Networks: a torso ψ turns an observation into features, a head turns features into returns."""

from quantail.networks.heads import HeadSpec, LossOutput, ReturnHead, mlp_head
from quantail.networks.network import (
    NUMBA,
    TORCH,
    ReturnNetwork,
    build_head,
    build_network,
    build_torso,
)
from quantail.networks.torsos import Torso

__all__ = [
    "NUMBA",
    "TORCH",
    "HeadSpec",
    "LossOutput",
    "ReturnHead",
    "ReturnNetwork",
    "Torso",
    "build_head",
    "build_network",
    "build_torso",
    "mlp_head",
]
