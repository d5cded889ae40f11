"""A torso and a head together."""

import torch
from torch import Tensor, nn

from quantail.networks.embeddings import Embedding
from quantail.networks.heads import ImplicitQuantiles
from quantail.networks.layers import initialise
from quantail.networks.torsos import Torso, build_torso
from quantail.observations import ObservationSpec
from quantail.settings import Settings


class QuantileNetwork(nn.Module):
    """From observations and levels to returns. Features are computed once, however many τ are asked."""

    def __init__(self, torso: Torso, head: ImplicitQuantiles) -> None:
        super().__init__()
        self.torso = torso
        self.head = head

    def features(self, observations: Tensor) -> Tensor:
        """ψ(x): [batch, d]."""
        features: Tensor = self.torso(observations)
        return features

    def quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        """Z_τ(x, a) for features [batch, d] and taus [batch, T]: [batch, T, actions]."""
        return self.head.quantiles(features, taus)

    def forward(self, observations: Tensor, taus: Tensor) -> Tensor:
        return self.quantiles(self.features(observations), taus)


def build_network(
    settings: Settings, spec: ObservationSpec, actions: int, seed: int = 0
) -> QuantileNetwork:
    """The network that the settings name, with weights drawn from this seed."""
    torso = build_torso(settings.torso, spec, settings.mlp_sizes)
    embedding = Embedding(
        settings.embedding,
        settings.embedding_size,
        settings.embedding_activation,
        torso.features,
    )
    head = ImplicitQuantiles(torso.features, actions, settings.head_size, embedding, settings.merge)
    network = QuantileNetwork(torso, head)
    initialise(network, torch.Generator().manual_seed(seed))
    return network
