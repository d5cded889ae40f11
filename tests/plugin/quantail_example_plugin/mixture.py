"""A return head: a mixture of Gaussians for every action, trained by maximum likelihood."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

import quantail
from quantail.distributions import ReturnDistribution, select_actions
from quantail.networks import HeadSpec, LossOutput, ReturnHead, mlp_head
from quantail.taus import TauSampler, midpoints


@dataclass(frozen=True)
class MixtureConfig:
    """The head's own settings: `--head.components 5` on the command line."""

    components: int = quantail.setting(3, "number of Gaussians of each action", least=1)
    atoms_per_component: int = quantail.setting(8, "atoms that stand for one Gaussian", least=2)
    min_sigma: float = quantail.setting(
        0.05, "least standard deviation of a Gaussian", unit="return", least=1e-4
    )


class Mixture(NamedTuple):
    """Log-weights, means and standard deviations, each [..., components]."""

    log_weights: Tensor
    means: Tensor
    sigmas: Tensor

    def log_density(self, returns: Tensor) -> Tensor:
        """Return log p(z): returns [..., M] -> [..., M]."""
        scaled = (returns.unsqueeze(-1) - self.means.unsqueeze(-2)) / self.sigmas.unsqueeze(-2)
        scales = (self.sigmas * math.sqrt(2 * math.pi)).log().unsqueeze(-2)
        return torch.logsumexp(self.log_weights.unsqueeze(-2) - scales - scaled.square() / 2, dim=-1)

    def mean(self) -> Tensor:
        """Return Σ_k w_k μ_k, [...]."""
        return (self.log_weights.exp() * self.means).sum(dim=-1)


class GaussianMixture(ReturnHead):
    """Z(x, a) ~ Σ_k w_k N(μ_k, σ_k²), after the parametric densities of Morimura et al. 2010.

    The loss is the cross-entropy from the target to the mixture, −E[log p(Z′)], whose gradient is that
    of the KL divergence. The lower bound on σ keeps it finite where a return is deterministic.
    """

    Config = MixtureConfig
    config: MixtureConfig

    def __init__(self, spec: HeadSpec, config: MixtureConfig) -> None:
        super().__init__(spec, config)
        # `mlp_head` builds a hidden layer and the outputs, noisy if the user asks for that.
        self.f = mlp_head(spec, 3 * config.components * spec.num_actions)
        # Quantiles of the standard normal, scaled so that their variance is 1: then the mean and the
        # variance of the atoms are those of the mixture.
        normal = torch.special.ndtri(midpoints(config.atoms_per_component, torch.float64))
        normal = (normal / normal.square().mean().sqrt()).float()
        self.register_buffer("normal", normal, persistent=False)

    @torch.no_grad()
    def start(self) -> None:
        """Let the means start apart, so that every component learns another mode."""
        bias = self.f[-1].bias.view(self.spec.num_actions, 3, self.config.components)
        bias[:, 1] += torch.linspace(-1, 1, self.config.components)

    def mixture(self, features: Tensor) -> Mixture:
        """Return the mixture of every action, each tensor [B, A, K]."""
        outputs = self.f(features).unflatten(1, (self.spec.num_actions, 3, self.config.components))
        logits, means, raw = outputs.unbind(dim=2)
        return Mixture(torch.log_softmax(logits, dim=-1), means, softplus(raw) + self.config.min_sigma)

    def distribution(self, features: Tensor, taus: TauSampler) -> ReturnDistribution:
        """Return the atoms of all components, those of component k with probability w_k in total."""
        log_weights, means, sigmas = self.mixture(features)
        atoms = means.unsqueeze(-1) + sigmas.unsqueeze(-1) * self.normal  # [B, A, K, atoms]
        weights = log_weights.exp().unsqueeze(-1) / len(self.normal)
        return ReturnDistribution(atoms.flatten(-2), weights.expand_as(atoms).flatten(-2))

    def loss(
        self, features: Tensor, actions: Tensor, target: ReturnDistribution, taus: TauSampler
    ) -> LossOutput:
        """Return −Σ_j p_j log p(z_j) over the target's atoms, [B]; the priority is that of DQN."""
        mixture = Mixture(*(select_actions(one, actions) for one in self.mixture(features)))  # [B, K]
        losses = -(target.probabilities() * mixture.log_density(target.atoms)).sum(dim=-1)
        means = mixture.mean().detach()
        return LossOutput(losses, (target.mean() - means).abs(), means)

    @staticmethod
    def describe(config: MixtureConfig) -> str:
        return f"{config.components} Gaussians"
