"""Targets: the return distribution that a head's prediction should move to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from quantail.batch import Batch
from quantail.distributions import ReturnDistribution
from quantail.networks import ReturnNetwork
from quantail.part_config import NoConfig
from quantail.parts import Group
from quantail.risk import DecisionContext, RiskMeasure
from quantail.settings import MUNCHAUSEN, setting
from quantail.taus import TauSampler


class Target:
    """Base class of targets: what the distribution of a transition's return should move to.

    A target implements `__call__`, which gets a batch, both networks, the risk measure that chooses the
    next action, and the sampler of τ. It returns the target distribution [B, M′], without gradients.

    Args:
        config: The target's own settings, an instance of its `Config`.
    """

    Config: ClassVar[type] = NoConfig  # a frozen dataclass: the target's own settings
    needs: ClassVar[Mapping[str, Any]] = {}  # settings that must have these values
    extra_terms: ClassVar[str] = ""  # what its distribution includes besides the rewards

    def __init__(self, config: Any = None) -> None:
        self.config = self.Config() if config is None else config

    @property
    def uses_online(self) -> bool:
        """Whether it also evaluates the online network, which then gets its own noise."""
        return False

    def __call__(
        self,
        batch: Batch,
        online: ReturnNetwork,
        target: ReturnNetwork,
        risk: RiskMeasure,
        taus: TauSampler,
    ) -> ReturnDistribution:
        raise NotImplementedError


@dataclass(frozen=True)
class BellmanConfig(Group):
    """Which network selects the next action."""

    double: bool = setting(
        False,
        "double Q-learning: the online network selects the action of the target",
        source="van Hasselt et al. 2016",
    )


class BellmanTarget(Target):
    """r + γⁿ Z(x′, a*), with one action a* for all atoms of a state.

    a* is the argmax of Q_β over the actions that are allowed at x′, by the target network, as in the
    paper, or by the online network (Double DQN, van Hasselt et al. 2016).
    """

    Config = BellmanConfig
    config: BellmanConfig

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
        context = next_context(batch)
        features = target.features(batch.next_observations)
        if self.config.double:
            values = online.head.value(online.features(batch.next_observations), risk, taus, context)
            returns = target.head.distribution(features, taus)
        else:
            values, returns = target.head.value_and_distribution(features, risk, taus, context)
        return bellman(batch, returns, context.allowed(values).argmax(dim=1))


@dataclass(frozen=True)
class MunchausenConfig(Group):
    """The weight, the temperature and the bound of the log-policy."""

    munchausen_alpha: float = setting(
        0.9, "weight of the log-policy (alpha)", source=MUNCHAUSEN, least=0, most=1
    )
    munchausen_temperature: float = setting(
        0.03, "temperature of the softmax policy (tau)", source=MUNCHAUSEN, least=1e-6
    )
    munchausen_clip: float = setting(
        -1.0, "lower bound of the log-policy times the temperature (l₀)", source=MUNCHAUSEN, most=0
    )


class MunchausenTarget(Target):
    """r + α [τ log π(a|x)] + γ Σ_a′ π(a′|x′) (Z(x′, a′) − τ log π(a′|x′)) (Vieillard et al. 2020).

    π is the softmax of Q_β/τ over the allowed actions by the target network; τ log π(a|x) is clipped to
    [clip, 0]. All actions count, so none is selected, and each reward needs the log-policy of its own
    state: one step alone.
    """

    Config = MunchausenConfig
    config: MunchausenConfig
    needs: ClassVar[Mapping[str, Any]] = {"n_step": 1}
    extra_terms = "the Munchausen terms"

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
        c, temperature = self.config, self.config.munchausen_temperature
        values, returns = target.head.value_and_distribution(features, risk, taus, after)
        current = target.head.value(target.features(batch.observations), risk, taus, here)
        bonus = munchausen_bonus(
            here.allowed(current), batch.actions, c.munchausen_alpha, temperature, c.munchausen_clip
        )
        following = soft(returns, after.allowed(values), temperature)
        return following.affine(batch.rewards + bonus, batch.discounts)


TARGETS: dict[str, type[Target]] = {"bellman": BellmanTarget, "munchausen": MunchausenTarget}


def next_context(batch: Batch) -> DecisionContext:
    """Return the context of the next observations. After the end of an episode every action is allowed.

    There the discount is 0 and no action is taken, so a mask that forbids all is not an error.
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
