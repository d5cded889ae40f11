"""Returns at fixed quantile fractions."""

from dataclasses import dataclass

from torch import Tensor

from quantail.distributions import ReturnDistribution, select_actions
from quantail.networks.heads.base import HeadSpec, LossOutput, ReturnHead, mlp_head
from quantail.networks.kernels import load_kernels
from quantail.networks.losses import quantile_huber_loss
from quantail.parts import Group
from quantail.settings import QR, setting
from quantail.taus import TauSampler, midpoints


@dataclass(frozen=True)
class HuberConfig(Group):
    """The quantile Huber loss."""

    kappa: float = setting(
        1.0,
        "threshold at which the quantile Huber loss becomes linear; 0 gives the plain quantile loss",
        source=QR,
        least=0,
    )


@dataclass(frozen=True)
class QuantilesConfig(HuberConfig):
    """Fixed quantiles."""

    quantiles: int = setting(200, "number of fixed quantiles", source=QR, least=1)


class FixedQuantiles(ReturnHead):
    """The quantiles at N fixed fractions (QR-DQN, Dabney et al. 2017), each an atom of probability 1/N.

    Dueling: Z_i(x, a) = V_i(x) + A_i(x, a) − the mean of A over fractions and actions. The subtracted
    baseline does not depend on τ, so the quantile function stays monotone where V and A are.
    """

    Config = QuantilesConfig
    supports_dueling = True
    config: QuantilesConfig

    def __init__(self, spec: HeadSpec, config: QuantilesConfig) -> None:
        super().__init__(spec, config)
        self.shape = (config.quantiles, spec.num_actions)
        self.f = mlp_head(spec, config.quantiles * spec.num_actions)
        self.v = mlp_head(spec, config.quantiles) if spec.dueling else None
        self.compiled_loss = False  # whether the loss runs in a compiled kernel

    def distribution(self, features: Tensor, taus: TauSampler) -> ReturnDistribution:
        returns = self.f(features).unflatten(1, self.shape)  # [B, N, A]
        if self.v is not None:
            returns = self.v(features).unsqueeze(2) + returns - returns.mean(dim=(1, 2), keepdim=True)
        return ReturnDistribution(returns.transpose(1, 2), comonotone=True)

    def loss(
        self, features: Tensor, actions: Tensor, target: ReturnDistribution, taus: TauSampler
    ) -> LossOutput:
        """QR-DQN: the quantile Huber loss at the midpoints of N equal intervals."""
        predictions = select_actions(self.distribution(features, taus).atoms, actions)  # [B, N]
        fixed = midpoints(predictions.shape[1]).to(predictions).expand_as(predictions)
        return quantile_loss(predictions, fixed, target, self.config.kappa, compiled=self.compiled_loss)

    def unsorted_quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        return self.distribution(features, lambda *_: taus).atoms.transpose(1, 2)

    @staticmethod
    def describe(config: QuantilesConfig) -> str:
        return f"{config.quantiles} quantiles"

    def use_dense_products(self) -> None:
        self.compiled_loss = False

    def use_kernels(self) -> bool:
        self.compiled_loss = load_kernels() is not None
        return self.compiled_loss


def quantile_loss(
    predictions: Tensor, taus: Tensor, target: ReturnDistribution, kappa: float, *, compiled: bool
) -> LossOutput:
    """Return the quantile Huber loss of predictions [B, N] at taus [B, N]; it is the priority too."""
    losses = quantile_huber_loss(predictions, taus, target.atoms, kappa, target.probs, compiled)
    return LossOutput(losses, losses.detach(), predictions.detach().mean(dim=1))
