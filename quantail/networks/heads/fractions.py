"""Returns at quantile fractions that a second network learns to choose."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor, nn

from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError
from quantail.networks.heads.base import AuxiliaryOptimizer, HeadSpec, LossOutput, ReturnHead, of_actions
from quantail.networks.heads.implicit import EmbeddingConfig, ImplicitConfig, ImplicitQuantiles
from quantail.networks.heads.quantiles import quantile_loss
from quantail.networks.losses import fraction_loss
from quantail.settings import FQF, setting
from quantail.taus import TauSampler


@dataclass(frozen=True)
class FractionsConfig(EmbeddingConfig):
    """Learned quantile fractions."""

    quantiles: int = setting(32, "number of learned quantile fractions", source=FQF, least=1)
    fraction_rate: float = setting(
        2.5e-9, "learning rate of FQF's fraction proposal network", source=FQF, least=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.quantiles < 2:
            raise QuantailError(
                "quantiles 1 leaves no fraction to learn: head fractions takes at least 2."
            )


class LearnedFractions(ReturnHead):
    """Implicit quantiles at fractions that a second network proposes (FQF, Yang et al. 2019)."""

    Config = FractionsConfig
    supports_dueling = True
    config: FractionsConfig

    def __init__(self, spec: HeadSpec, config: FractionsConfig) -> None:
        super().__init__(spec, config)
        embedding = {one.name: getattr(config, one.name) for one in fields(EmbeddingConfig)}
        self.implicit = ImplicitQuantiles(spec, ImplicitConfig(**embedding))
        self.proposal = nn.Linear(spec.num_features, config.quantiles)

    @torch.no_grad()
    def start(self) -> None:
        """Propose even fractions for every state, as FQF begins."""
        self.proposal.weight.zero_()
        self.proposal.bias.zero_()

    def fractions(self, features: Tensor) -> Tensor:
        """Return 0 = τ_0 ≤ τ_1 ≤ … ≤ τ_N = 1, [B, N + 1]. No gradient goes into the features."""
        shares = torch.softmax(self.proposal(features.detach()), dim=1)
        inner = shares.cumsum(dim=1)[:, :-1].clamp(max=1)
        return torch.cat([torch.zeros_like(shares[:, :1]), inner, torch.ones_like(shares[:, :1])], dim=1)

    def distribution(self, features: Tensor, taus: TauSampler) -> ReturnDistribution:
        """Return F⁻¹ at the midpoints τ̂_i, each with the probability τ_{i+1} − τ_i."""
        fractions = self.fractions(features).detach()
        atoms = self.implicit.quantiles(features, fraction_midpoints(fractions))  # [B, N, A]
        return ReturnDistribution(
            atoms.transpose(1, 2), fractions.diff(dim=1).unsqueeze(1), comonotone=True
        )

    def loss(
        self, features: Tensor, actions: Tensor, target: ReturnDistribution, taus: TauSampler
    ) -> LossOutput:
        """FQF: the quantile Huber loss at the proposed fractions, and the proposals' own loss.

        Target atoms count by their probability, where the paper counts them equally: only then is the
        target the distribution that the fractions stand for.
        """
        fractions = self.fractions(features)  # [B, N + 1]
        middles = fraction_midpoints(fractions.detach())
        predictions = self._of(features, middles, actions)  # [B, N]
        compiled = self.implicit.compiled_loss
        output = quantile_loss(predictions, middles, target, self.config.kappa, compiled=compiled)
        with torch.no_grad():
            inner = self._of(features, fractions[:, 1:-1], actions)
        proposals = fraction_loss(fractions, inner, predictions)
        widths = fractions.detach().diff(dim=1)
        values = (widths * predictions.detach()).sum(dim=1)
        return replace(output, values=values, auxiliary={"fractions": proposals})

    def _of(self, features: Tensor, taus: Tensor, actions: Tensor) -> Tensor:
        return of_actions(self.implicit.quantiles(features, taus), actions)

    def unsorted_quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        return self.distribution(features, lambda *_: taus).atoms.transpose(1, 2)

    def optimizers(self) -> Mapping[str, AuxiliaryOptimizer]:
        proposing = tuple(self.proposal.parameters())
        return {"fractions": AuxiliaryOptimizer(proposing, self.config.fraction_rate, 1e-5)}

    @staticmethod
    def describe(config: FractionsConfig) -> str:
        return f"{config.quantiles} learned fractions"

    def use_dense_products(self) -> None:
        self.implicit.use_dense_products()

    def use_kernels(self) -> bool:
        return self.implicit.use_kernels()


def fraction_midpoints(fractions: Tensor) -> Tensor:
    """Return τ̂_i = (τ_i + τ_{i+1})/2: [B, N + 1] -> [B, N]."""
    return (fractions[:, :-1] + fractions[:, 1:]) / 2
