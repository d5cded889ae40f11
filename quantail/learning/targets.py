"""Targets: the return distribution that a head's prediction should move to."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from quantail.batch import Batch
from quantail.distributions import ReturnDistribution
from quantail.networks import ReturnNetwork
from quantail.risk import DecisionContext, RiskMeasure
from quantail.taus import TauSampler


class Target(Protocol):
    """From a batch and the two networks to the target distribution [B, M′], without gradients."""

    @property
    def uses_online(self) -> bool:
        """Whether it also asks the online network, which then gets noise of its own."""

    def __call__(
        self,
        batch: Batch,
        online: ReturnNetwork,
        target: ReturnNetwork,
        risk: RiskMeasure,
        taus: TauSampler,
    ) -> ReturnDistribution: ...


@dataclass(frozen=True)
class BellmanTarget:
    """r + γⁿ Z(x′, a*), with one action a* for all atoms of a state.

    a* is the argmax of Q_β over the actions that are allowed at x′, by the target network, as in the
    paper, or by the online network (Double DQN, van Hasselt et al. 2016).
    """

    double: bool = False

    @property
    def uses_online(self) -> bool:
        return self.double

    def __call__(
        self,
        batch: Batch,
        online: ReturnNetwork,
        target: ReturnNetwork,
        risk: RiskMeasure,
        taus: TauSampler,
    ) -> ReturnDistribution:
        context = next_context(batch)
        features = target.features(batch.next_observations)
        if self.double:
            values = online.head.value(online.features(batch.next_observations), risk, taus, context)
            returns = target.head.distribution(features, taus)
        else:
            values, returns = target.head.value_and_distribution(features, risk, taus, context)
        return bellman(batch, returns, context.allowed(values).argmax(dim=1))


@dataclass(frozen=True)
class MunchausenTarget:
    """r + α [τ log π(a|x)] + γ Σ_a′ π(a′|x′) (Z(x′, a′) − τ log π(a′|x′)) (Vieillard et al. 2020).

    π is the softmax of Q_β/τ over the allowed actions by the target network; τ log π(a|x) is clipped to
    [clip, 0].
    """

    alpha: float = 0.9
    temperature: float = 0.03
    clip: float = -1.0
    uses_online: bool = False

    def __call__(
        self,
        batch: Batch,
        online: ReturnNetwork,
        target: ReturnNetwork,
        risk: RiskMeasure,
        taus: TauSampler,
    ) -> ReturnDistribution:
        here, after = DecisionContext(batch.masks), next_context(batch)
        features = target.features(batch.next_observations)
        values, returns = target.head.value_and_distribution(features, risk, taus, after)
        current = target.head.value(target.features(batch.observations), risk, taus, here)
        bonus = munchausen_bonus(
            here.allowed(current), batch.actions, self.alpha, self.temperature, self.clip
        )
        following = soft(returns, after.allowed(values), self.temperature)
        return following.affine(batch.rewards + bonus, batch.discounts)


def next_context(batch: Batch) -> DecisionContext:
    """Return the context of the next observations. After the end of an episode every action is allowed.

    There the discount is 0 and no action is taken, so a mask that forbids all is no mistake.
    """
    if batch.next_masks is None:
        return DecisionContext()
    return DecisionContext(batch.next_masks | (batch.discounts == 0).unsqueeze(1))


def check_masks(batch: Batch) -> None:
    """Raise an error if a state in which an action is taken allows none."""
    DecisionContext(batch.masks).check()
    next_context(batch).check()


def bellman(batch: Batch, returns: ReturnDistribution, actions: Tensor) -> ReturnDistribution:
    """Return r + γⁿ Z(x′, a): returns [B, A, M], actions [B] -> [B, M]."""
    return returns.select(actions).affine(batch.rewards, batch.discounts)


def munchausen_bonus(
    values: Tensor, actions: Tensor, alpha: float, temperature: float, clip: float
) -> Tensor:
    """Return α [τ log π(a|x)] clipped to [clip, 0], π the softmax of values/τ: [B, A] -> [B]."""
    log_policy = torch.log_softmax(values / temperature, dim=1).gather(1, actions.unsqueeze(1))
    return alpha * (temperature * log_policy.squeeze(1)).clamp(min=clip, max=0)


def soft(returns: ReturnDistribution, values: Tensor, temperature: float) -> ReturnDistribution:
    """Return Σ_a π(a) (Z(a) − τ log π(a)), π the softmax of values/τ [B, A].

    An action that is not allowed has the value −∞ and so the probability 0: it drops out.
    """
    log_policy = torch.log_softmax(values / temperature, dim=1)
    return returns.mixture(log_policy.exp(), -temperature * log_policy)
