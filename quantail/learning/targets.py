"""Bellman targets as pure functions of tensors."""

from dataclasses import dataclass

import torch
from torch import Tensor

from quantail.networks.laws import Law, expectation


@dataclass(frozen=True)
class Target:
    """The law that a prediction should move to: atoms [batch, M] and their chances, None if equal."""

    atoms: Tensor
    weights: Tensor | None = None

    def mean(self) -> Tensor:
        """[batch]."""
        return expectation(self.atoms, self.weights)

    def chances(self) -> Tensor:
        """[batch, M]."""
        if self.weights is None:
            return torch.full_like(self.atoms, 1 / self.atoms.shape[1])
        return self.weights.expand_as(self.atoms)


def taken(returns: Tensor, actions: Tensor) -> Tensor:
    """The returns of one action per state: [batch, T, actions] and [batch] -> [batch, T]."""
    index = actions.view(-1, 1, 1).expand(-1, returns.shape[1], 1)
    return returns.gather(2, index).squeeze(2)


def bellman_target(rewards: Tensor, discounts: Tensor, law: Law, actions: Tensor) -> Target:
    """r + γ Z(x', a*), one action a* [batch] for all atoms of a state.

    `rewards` is the n-step return, `discounts` γⁿ, or 0 where the episode ended.
    """
    atoms = rewards.unsqueeze(1) + discounts.unsqueeze(1) * taken(law.atoms, actions)
    if law.weights is None:
        return Target(atoms)
    weights = law.weights.expand_as(law.atoms)
    return Target(atoms, taken(weights, actions))


def munchausen_bonus(
    values: Tensor, actions: Tensor, alpha: float, temperature: float, clip: float
) -> Tensor:
    """α [τ log π(a|x)] clipped to [l₀, 0], π the softmax of values/τ: [batch, actions] -> [batch]."""
    log_policy = torch.log_softmax(values / temperature, dim=1).gather(1, actions.unsqueeze(1))
    return alpha * (temperature * log_policy.squeeze(1)).clamp(min=clip, max=0)


def soft_target(
    rewards: Tensor, discounts: Tensor, law: Law, values: Tensor, temperature: float
) -> Target:
    """r + γ Σ_a π(a|x') (Z(x', a) − τ log π(a|x')), π the softmax of values/τ [batch, actions].

    Where all actions share their levels the sum is taken level by level, as in M-IQN; else the
    target is the mixture of the actions' laws.
    """
    log_policy = torch.log_softmax(values / temperature, dim=1).unsqueeze(1)  # [batch, 1, actions]
    policy = log_policy.exp()
    soft = law.atoms - temperature * log_policy  # [batch, M, actions]
    if law.weights is None or law.weights.shape[2] == 1:
        atoms = (policy * soft).sum(dim=2)
        weights = None if law.weights is None else law.weights.squeeze(2)
    else:
        atoms, weights = soft.flatten(1), (policy * law.weights).flatten(1)
    return Target(rewards.unsqueeze(1) + discounts.unsqueeze(1) * atoms, weights)
