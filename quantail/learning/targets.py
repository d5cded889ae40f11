"""Bellman targets as pure functions of tensors."""

from dataclasses import dataclass

import torch
from torch import Tensor

from quantail.networks.distributions import ReturnDistribution, expectation


@dataclass(frozen=True)
class Target:
    """The distribution that a prediction should move to: atoms [batch, M] and probabilities or None."""

    atoms: Tensor
    weights: Tensor | None = None

    def mean(self) -> Tensor:
        """[batch]."""
        return expectation(self.atoms, self.weights)

    def probabilities(self) -> Tensor:
        """[batch, M]."""
        if self.weights is None:
            return torch.full_like(self.atoms, 1 / self.atoms.shape[1])
        return self.weights.expand_as(self.atoms)


def select_actions(returns: Tensor, actions: Tensor) -> Tensor:
    """The returns of one action per state: [batch, T, actions] and [batch] -> [batch, T]."""
    index = actions.view(-1, 1, 1).expand(-1, returns.shape[1], 1)
    return returns.gather(2, index).squeeze(2)


def bellman_target(
    rewards: Tensor, discounts: Tensor, distribution: ReturnDistribution, actions: Tensor
) -> Target:
    """r + γ Z(x', a*), one action a* [batch] for all atoms of a state.

    `rewards` is the n-step return, `discounts` γⁿ, or 0 where the episode ended.
    """
    atoms = rewards.unsqueeze(1) + discounts.unsqueeze(1) * select_actions(distribution.atoms, actions)
    if distribution.weights is None:
        return Target(atoms)
    weights = distribution.weights.expand_as(distribution.atoms)
    return Target(atoms, select_actions(weights, actions))


def munchausen_bonus(
    values: Tensor, actions: Tensor, alpha: float, temperature: float, clip: float
) -> Tensor:
    """α [τ log π(a|x)] clipped to [l₀, 0], π the softmax of values/τ: [batch, actions] -> [batch]."""
    log_policy = torch.log_softmax(values / temperature, dim=1).gather(1, actions.unsqueeze(1))
    return alpha * (temperature * log_policy.squeeze(1)).clamp(min=clip, max=0)


def soft_target(
    rewards: Tensor,
    discounts: Tensor,
    distribution: ReturnDistribution,
    values: Tensor,
    temperature: float,
) -> Target:
    """r + γ Σ_a π(a|x') (Z(x', a) − τ log π(a|x')), π the softmax of values/τ [batch, actions].

    Where all actions share their levels the sum is taken level by level, as in M-IQN; else the
    target is the mixture of the actions' distributions.
    """
    log_policy = torch.log_softmax(values / temperature, dim=1).unsqueeze(1)  # [batch, 1, actions]
    policy = log_policy.exp()
    soft = distribution.atoms - temperature * log_policy  # [batch, M, actions]
    if distribution.weights is None or distribution.weights.shape[2] == 1:
        atoms = (policy * soft).sum(dim=2)
        weights = None if distribution.weights is None else distribution.weights.squeeze(2)
    else:
        atoms, weights = soft.flatten(1), (policy * distribution.weights).flatten(1)
    return Target(rewards.unsqueeze(1) + discounts.unsqueeze(1) * atoms, weights)
