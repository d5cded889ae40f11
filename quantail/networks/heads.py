"""Return heads. Each answers the same question: `quantiles(features, taus)`."""

import torch
from torch import Tensor, nn

from quantail.networks.embeddings import Embedding


class ImplicitQuantiles(nn.Module):
    """Z_τ(x, a) ≈ f(m(ψ(x), φ(τ)))_a, equation 4 and the appendix of the paper."""

    def __init__(self, features: int, actions: int, hidden: int, embedding: Embedding, merge: str):
        super().__init__()
        self.phi = embedding
        self.merge = merge
        merged = 2 * features if merge == "concatenate" else features
        self.f = nn.Sequential(nn.Linear(merged, hidden), nn.ReLU(), nn.Linear(hidden, actions))

    def quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        """features [batch, d] and taus [batch, T] to returns [batch, T, actions]."""
        psi, phi = features.unsqueeze(1), self.phi(taus)  # [batch, 1, d], [batch, T, d]
        if self.merge == "multiply":
            merged = psi * phi
        elif self.merge == "residual":
            merged = psi * (1 + phi)
        else:
            merged = torch.cat([psi.expand_as(phi), phi], dim=-1)
        returns: Tensor = self.f(merged)
        return returns
