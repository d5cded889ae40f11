"""Embeddings φ of a quantile fraction τ ∈ [0, 1] into the space of features."""

import torch
from torch import Tensor, nn

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid}


class Cosine(nn.Module):
    """cos(π i τ) for i = 1..n. (The equation's 0..n−1 is a slip; the appendix has 1..n.)"""

    frequencies: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.pi * torch.arange(1, size + 1), persistent=False)

    def forward(self, tau: Tensor) -> Tensor:
        return torch.cos(tau * self.frequencies)  # [..., 1] -> [..., n]


class Embedding(nn.Sequential):
    """φ(τ): a linear function of cosines, an MLP of one hidden layer, or a linear function of τ."""

    def __init__(self, kind: str, size: int, activation: str, features: int) -> None:
        last = ACTIVATIONS[activation]()
        layers: dict[str, list[nn.Module]] = {
            "cosine": [Cosine(size), nn.Linear(size, features)],
            "mlp": [nn.Linear(1, size), nn.ReLU(), nn.Linear(size, features)],
            "linear": [nn.Linear(1, features)],
        }
        super().__init__(*layers[kind], last)
        self.rectified = activation == "relu"
        self.basis_layers = tuple(layers[kind][:-1])

    @property
    def linear(self) -> nn.Linear:
        """The last layer before the activation."""
        layer = self[-2]
        assert isinstance(layer, nn.Linear)
        return layer

    def basis(self, taus: Tensor) -> Tensor:
        """Return the inputs of the last layer: [batch, taus, n]."""
        seen = taus.unsqueeze(-1)
        for layer in self.basis_layers:
            seen = layer(seen)
        return seen

    def forward(self, taus: Tensor) -> Tensor:
        embedded: Tensor = super().forward(taus.unsqueeze(-1))  # type: ignore[no-untyped-call]
        return embedded  # [batch, taus, features]
