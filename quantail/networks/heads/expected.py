"""The mean alone."""

import math
from dataclasses import dataclass

from torch import Tensor

from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError
from quantail.networks.heads.base import HeadSpec, LossOutput, ReturnHead, mlp_head, scale_gradient
from quantail.networks.losses import huber
from quantail.parts import Group
from quantail.settings import NATURE, setting
from quantail.taus import TauSampler


@dataclass(frozen=True)
class ExpectedConfig(Group):
    """The Huber loss of the mean."""

    kappa: float = setting(
        1.0, "threshold at which the Huber loss becomes linear", source=NATURE, least=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kappa == 0:
            raise QuantailError(
                "kappa 0 would learn the median: with head expected it takes more than 0."
            )


class Expected(ReturnHead):
    """Q(x, a) alone (DQN, Mnih et al. 2015): a point mass. Dueling as in Wang et al. 2016."""

    Config = ExpectedConfig
    supports_dueling = True
    config: ExpectedConfig
    mean_only = True

    def __init__(self, spec: HeadSpec, config: ExpectedConfig) -> None:
        super().__init__(spec, config)
        self.f = mlp_head(spec, spec.num_actions)
        self.v = mlp_head(spec, 1) if spec.dueling else None

    def expected(self, features: Tensor) -> Tensor:
        """Return Q(x, a), [B, A]."""
        if self.v is None:
            plain: Tensor = self.f(features)
            return plain
        # Two streams push into the torso: their gradient is scaled as in the dueling paper.
        features = scale_gradient(features, 1 / math.sqrt(2))
        advantages: Tensor = self.f(features)
        values: Tensor = self.v(features)
        return values + advantages - advantages.mean(dim=1, keepdim=True)

    def distribution(self, features: Tensor, taus: TauSampler) -> ReturnDistribution:
        return ReturnDistribution(self.expected(features).unsqueeze(-1), comonotone=True)

    def quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        return self.expected(features).unsqueeze(1).expand(-1, taus.shape[1], -1)

    def loss(
        self, features: Tensor, actions: Tensor, target: ReturnDistribution, taus: TauSampler
    ) -> LossOutput:
        """DQN: the Huber loss L_κ of the error δ, whose gradient is δ clipped to ±κ; priority |δ|."""
        predictions = self.expected(features).gather(1, actions.unsqueeze(1)).squeeze(1)
        delta = target.mean() - predictions
        return LossOutput(huber(delta, self.config.kappa), delta.detach().abs(), predictions.detach())

    @staticmethod
    def describe(config: ExpectedConfig) -> str:
        return "mean only"
