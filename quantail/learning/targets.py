"""Bellman targets as pure functions of tensors."""

from torch import Tensor


def taken(returns: Tensor, actions: Tensor) -> Tensor:
    """The returns of one action per state: [batch, T, actions] and [batch] -> [batch, T]."""
    index = actions.view(-1, 1, 1).expand(-1, returns.shape[1], 1)
    return returns.gather(2, index).squeeze(2)


def greedy(policy_returns: Tensor) -> Tensor:
    """π_β: the action whose mean over the K distorted levels is largest, one for each state.

    [batch, K, actions] -> [batch].
    """
    return policy_returns.mean(dim=1).argmax(dim=1)


def bellman_target(
    rewards: Tensor, discounts: Tensor, next_returns: Tensor, next_actions: Tensor
) -> Tensor:
    """r + γ Z_τ'(x', a*): [batch], [batch], [batch, N', actions], [batch] -> [batch, N'].

    `rewards` is the n-step return, `discounts` γⁿ, or 0 where the episode ended.
    """
    return rewards.unsqueeze(1) + discounts.unsqueeze(1) * taken(next_returns, next_actions)
