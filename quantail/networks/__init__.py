"""Networks: a torso ψ turns an observation into features, a head turns features and τ into returns."""

from quantail.networks.network import QuantileNetwork, build_network

__all__ = ["QuantileNetwork", "build_network"]
