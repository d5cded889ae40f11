"""Return heads: how the distribution of the return is represented.

Each answers the same question, `quantiles(features, taus)`: features [batch, d] and levels
[batch, T] to returns [batch, T, actions]. Heads whose distribution is a fixed set of atoms give it as
`distribution(features)`; the implicit head is asked at levels that are drawn.
"""

import math

import torch
from torch import Tensor, nn

from quantail.networks.distributions import ReturnDistribution
from quantail.networks.embeddings import Embedding
from quantail.networks.layers import mlp_head, weights_of
from quantail.networks.products import merged_linear, use_sparse_product
from quantail.settings import Settings


class ExpectedValue(nn.Module):
    """Q(x, a) alone (DQN, Mnih et al. 2015): a point mass. Dueling as in Wang et al. 2016."""

    def __init__(self, features: int, actions: int, hidden: int, dueling: bool, sigma: float) -> None:
        super().__init__()
        self.f = mlp_head(features, hidden, actions, sigma)
        self.v = mlp_head(features, hidden, 1, sigma) if dueling else None

    def expected(self, features: Tensor) -> Tensor:
        """Q(x, a): [batch, actions]."""
        if self.v is None:
            plain: Tensor = self.f(features)
            return plain
        # Two streams push into the torso: their gradient is scaled as in the dueling paper.
        features = scale_gradient(features, 1 / math.sqrt(2))
        advantages: Tensor = self.f(features)
        values: Tensor = self.v(features)
        return values + advantages - advantages.mean(dim=1, keepdim=True)

    def distribution(self, features: Tensor) -> ReturnDistribution:
        return ReturnDistribution(self.expected(features).unsqueeze(1))

    def quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        return self.expected(features).unsqueeze(1).expand(-1, taus.shape[1], -1)


class Categorical(nn.Module):
    """Probabilities of fixed atoms (C51, Bellemare et al. 2017). Dueling on logits, as in Rainbow."""

    support: Tensor

    def __init__(
        self,
        features: int,
        actions: int,
        hidden: int,
        dueling: bool,
        sigma: float,
        atoms: int,
        least: float,
        most: float,
    ) -> None:
        super().__init__()
        self.shape = (atoms, actions)
        self.f = mlp_head(features, hidden, atoms * actions, sigma)
        self.v = mlp_head(features, hidden, atoms, sigma) if dueling else None
        self.register_buffer("support", torch.linspace(least, most, atoms), persistent=False)

    def log_probs(self, features: Tensor) -> Tensor:
        """log p_i(x, a): [batch, atoms, actions]."""
        logits = self.f(features).unflatten(1, self.shape)
        if self.v is not None:
            logits = self.v(features).unsqueeze(2) + logits - logits.mean(dim=2, keepdim=True)
        return torch.log_softmax(logits, dim=1)

    def distribution(self, features: Tensor) -> ReturnDistribution:
        probabilities = self.log_probs(features).exp()
        return ReturnDistribution(self.support.view(1, -1, 1).expand_as(probabilities), probabilities)

    def quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        return self.distribution(features).quantiles(taus)


class FixedQuantiles(nn.Module):
    """The quantiles of N fixed levels (QR-DQN, Dabney et al. 2017), each an atom of probability 1/N.

    Dueling: Z_i(x, a) = V_i(x) + A_i(x, a) − the mean of A over levels and actions. What is taken
    away does not depend on the level, so streams that rise with τ have a sum that does.
    """

    def __init__(
        self, features: int, actions: int, hidden: int, dueling: bool, sigma: float, count: int
    ) -> None:
        super().__init__()
        self.shape = (count, actions)
        self.f = mlp_head(features, hidden, count * actions, sigma)
        self.v = mlp_head(features, hidden, count, sigma) if dueling else None

    def distribution(self, features: Tensor) -> ReturnDistribution:
        returns = self.f(features).unflatten(1, self.shape)  # [batch, N, actions]
        if self.v is not None:
            returns = self.v(features).unsqueeze(2) + returns - returns.mean(dim=(1, 2), keepdim=True)
        return ReturnDistribution(returns)

    def quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        return self.distribution(features).quantiles(taus)


class ImplicitQuantiles(nn.Module):
    """Z_τ(x, a) ≈ f(m(ψ(x), φ(τ)))_a, equation 4 and the appendix of the IQN paper.

    Dueling: Z_τ(x, a) = V_τ(x) + A_τ(x, a) − the mean over actions of A at τ = ½. What is taken away
    does not depend on τ, so streams that rise with τ have a sum that does.
    """

    def __init__(
        self,
        features: int,
        actions: int,
        hidden: int,
        dueling: bool,
        sigma: float,
        embedding: Embedding,
        merge: str,
        nonnegative: bool = False,  # whether ψ is
    ) -> None:
        super().__init__()
        self.phi = embedding
        self.merge = merge
        # Zeros of ψ and φ are zeros of the merge, and may be skipped where ψ comes from a ReLU.
        self.sparse = merge == "multiply" and embedding.rectified and nonnegative
        merged = 2 * features if merge == "concatenate" else features
        self.f = mlp_head(merged, hidden, actions, sigma)
        self.v = mlp_head(merged, hidden, 1, sigma) if dueling else None

    def quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        if self.v is None:
            return self._streams(features, taus, self.f)[0]
        middle = torch.full_like(taus[:, :1], 0.5)
        levels = torch.cat([taus, middle], dim=1)  # [batch, T + 1]
        advantages, values = self._streams(features, levels, self.f, self.v)
        return values[:, :-1] + advantages[:, :-1] - advantages[:, -1:].mean(dim=2, keepdim=True)

    def _streams(self, features: Tensor, taus: Tensor, *streams: nn.Sequential) -> list[Tensor]:
        """What each stream makes of the merge: [batch, T, outputs] each."""
        if not self.sparse or not use_sparse_product(features, taus.shape[1]):
            merged = self._merged(features, taus)
            return [stream(merged) for stream in streams]
        layers = [weights_of(stream[0]) for stream in streams]
        phi = weights_of(self.phi.linear)
        hidden = merged_linear(features, self.phi.basis(taus), phi, layers)
        return [stream[2](stream[1](h)) for stream, h in zip(streams, hidden, strict=True)]

    def _merged(self, features: Tensor, taus: Tensor) -> Tensor:
        psi = features.unsqueeze(1)  # [batch, 1, d]
        phi: Tensor = self.phi(taus)  # [batch, T, d]
        if self.merge == "multiply":
            return psi * phi
        if self.merge == "residual":
            return psi * (1 + phi)
        return torch.cat([psi.expand_as(phi), phi], dim=-1)


class LearnedFractions(nn.Module):
    """Implicit quantiles at levels that a second network proposes (FQF, Yang et al. 2019)."""

    def __init__(self, features: int, implicit: ImplicitQuantiles, count: int) -> None:
        super().__init__()
        self.implicit = implicit
        self.proposal = nn.Linear(features, count)

    @torch.no_grad()
    def start_evenly(self) -> None:
        """Propose even fractions for every state, as FQF begins."""
        self.proposal.weight.zero_()
        self.proposal.bias.zero_()

    def fractions(self, features: Tensor) -> Tensor:
        """0 = τ_0 ≤ τ_1 ≤ … ≤ τ_N = 1: [batch, N + 1]. No gradient goes into the features."""
        shares = torch.softmax(self.proposal(features.detach()), dim=1)
        inner = shares.cumsum(dim=1)[:, :-1].clamp(max=1)
        return torch.cat([torch.zeros_like(shares[:, :1]), inner, torch.ones_like(shares[:, :1])], dim=1)

    def distribution(self, features: Tensor) -> ReturnDistribution:
        """F⁻¹ at the midpoints τ̂_i, each with the probability τ_{i+1} − τ_i."""
        fractions = self.fractions(features).detach()
        atoms = self.implicit.quantiles(features, fraction_midpoints(fractions))
        return ReturnDistribution(atoms, fractions.diff(dim=1).unsqueeze(2))

    def quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        """Return the quantiles of the distribution: the network is trained only at its own fractions."""
        return self.distribution(features).quantiles(taus)


Head = ExpectedValue | Categorical | FixedQuantiles | ImplicitQuantiles | LearnedFractions


def fraction_midpoints(fractions: Tensor) -> Tensor:
    """τ̂_i = (τ_i + τ_{i+1})/2: [batch, N + 1] -> [batch, N]."""
    return (fractions[:, :-1] + fractions[:, 1:]) / 2


def build_head(settings: Settings, features: int, actions: int, nonnegative: bool = False) -> Head:
    """Build the head that the settings name; `nonnegative` says whether the torso's features are."""
    s = settings
    sigma = s.noisy_sigma if s.noisy else 0.0
    common = (features, actions, s.head_size, s.dueling, sigma)
    if s.head == "expected":
        return ExpectedValue(*common)
    if s.head == "categorical":
        return Categorical(*common, s.atoms, s.value_min, s.value_max)
    if s.head == "quantiles":
        return FixedQuantiles(*common, s.quantiles)
    embedding = Embedding(s.embedding, s.embedding_size, s.embedding_activation, features)
    implicit = ImplicitQuantiles(*common, embedding, s.merge, nonnegative)
    return implicit if s.head == "implicit" else LearnedFractions(features, implicit, s.quantiles)


def scale_gradient(features: Tensor, scale: float) -> Tensor:
    """The same features, whose gradient is scaled on its way back."""
    return scale * features + (1 - scale) * features.detach()
