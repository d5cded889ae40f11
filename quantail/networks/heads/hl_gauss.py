"""The mean alone, learned by classification."""

from dataclasses import dataclass

import torch
from torch import Tensor

from quantail.distributions import ReturnDistribution, select_actions
from quantail.networks.heads.base import HeadSpec, LossOutput, ReturnHead, mlp_head
from quantail.networks.heads.categorical import CategoricalConfig, log_probs_of
from quantail.networks.losses import cross_entropy, gaussian_histogram
from quantail.settings import C51, HL_GAUSS, setting
from quantail.taus import TauSampler


@dataclass(frozen=True)
class HLGaussConfig(CategoricalConfig):
    """Bins, and the width of the target's Gaussian."""

    atoms: int = setting(51, "number of bins of the hl-gauss head", source=C51, least=2)
    hl_gauss_sigma: float = setting(
        0.75,
        "standard deviation of the Gaussian around a target, in widths of a bin",
        unit="bins",
        source=HL_GAUSS,
        least=0.01,
    )

    @property
    def sigma(self) -> float:
        """The standard deviation of the Gaussian around a target."""
        return self.hl_gauss_sigma * (self.value_max - self.value_min) / self.atoms


class HLGauss(ReturnHead):
    """Q(x, a) = Σ_i p_i(x, a) c_i, the mean of a histogram of bins with centres c_i.

    HL-Gauss, Farebrother et al. 2024. The target is a number, the mean return, which the loss spreads
    over the bins as a Gaussian of fixed width. So the histogram is a means of training and no return
    distribution: this head learns the mean alone, as `Expected` does. Dueling on logits, as in Rainbow.
    """

    Config = HLGaussConfig
    supports_dueling = True
    config: HLGaussConfig
    mean_only = True
    edges: Tensor
    centres: Tensor

    def __init__(self, spec: HeadSpec, config: HLGaussConfig) -> None:
        super().__init__(spec, config)
        self.shape = (config.atoms, spec.num_actions)
        self.f = mlp_head(spec, config.atoms * spec.num_actions)
        self.v = mlp_head(spec, config.atoms) if spec.dueling else None
        edges = torch.linspace(config.value_min, config.value_max, config.atoms + 1)
        self.register_buffer("edges", edges, persistent=False)
        self.register_buffer("centres", (edges[1:] + edges[:-1]) / 2, persistent=False)

    def log_probs(self, features: Tensor) -> Tensor:
        """Return log p_i(x, a) of every bin, [B, A, M]."""
        return log_probs_of(features, self.shape, self.f, self.v)

    def distribution(self, features: Tensor, taus: TauSampler) -> ReturnDistribution:
        means = (self.log_probs(features).exp() * self.centres).sum(dim=2)  # [B, A]
        return ReturnDistribution(means.unsqueeze(-1), comonotone=True)

    def loss(
        self, features: Tensor, actions: Tensor, target: ReturnDistribution, taus: TauSampler
    ) -> LossOutput:
        """HL-Gauss: the cross-entropy from the histogram of N(target mean, σ²); priority |δ|.

        A target beyond the range of the bins counts as its nearest end.
        """
        log_probs = select_actions(self.log_probs(features), actions)  # [B, M]
        means = target.mean().clamp(*self.support())
        losses = cross_entropy(log_probs, gaussian_histogram(means, self.edges, self.config.sigma))
        values = (log_probs.detach().exp() * self.centres).sum(dim=1)
        return LossOutput(losses, (means - values).abs(), values)

    def support(self) -> tuple[float, float]:
        return self.config.value_min, self.config.value_max

    @staticmethod
    def describe(config: HLGaussConfig) -> str:
        c = config
        return f"mean only, {c.atoms} bins from {c.value_min:g} to {c.value_max:g}"
