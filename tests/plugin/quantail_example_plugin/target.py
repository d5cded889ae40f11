"""A target: from a batch of transitions to the return distribution that the head should learn."""

from dataclasses import dataclass

import torch

import quantail
from quantail.batch import Batch
from quantail.distributions import ReturnDistribution
from quantail.learning.targets import BellmanConfig, Target, next_context
from quantail.networks import ReturnNetwork
from quantail.risk import RiskMeasure
from quantail.taus import TauSampler


@dataclass(frozen=True)
class SoftmaxConfig(BellmanConfig):
    """Quantail's own setting `double`, with its flat name `--double`, and `--target.temperature`."""

    temperature: float = quantail.setting(1.0, "temperature of the softmax policy", least=1e-3)


class SoftmaxTarget(Target):
    """r + γⁿ Z(x′, A′), with A′ drawn from the softmax of Q_β(x′, ·)/temperature (expected SARSA).

    The values Q_β come from the target network, or with `double` from the online network.
    """

    Config = SoftmaxConfig
    config: SoftmaxConfig

    @property
    def uses_online(self) -> bool:
        return self.config.double

    def __call__(
        self,
        batch: Batch,
        online: ReturnNetwork,
        target: ReturnNetwork,
        risk: RiskMeasure,
        taus: TauSampler,
    ) -> ReturnDistribution:
        context = next_context(batch)  # which actions are allowed
        features = target.features(batch.next_observations)
        values, returns = target.head.value_and_distribution(features, risk, taus, context)
        if self.config.double:
            values = online.head.value(online.features(batch.next_observations), risk, taus, context)
        policy = torch.softmax(context.allowed(values) / self.config.temperature, dim=1)
        return returns.mixture(policy).affine(batch.rewards, batch.discounts)
