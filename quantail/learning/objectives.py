"""How far each head's prediction is from a target distribution."""

from dataclasses import dataclass

import torch
from torch import Tensor

from quantail.learning.losses import (
    categorical_divergence,
    fraction_loss,
    huber,
    project,
    quantile_huber_loss,
)
from quantail.learning.targets import Target, select_actions
from quantail.networks.heads import (
    Categorical,
    ExpectedValue,
    FixedQuantiles,
    Head,
    LearnedFractions,
    fraction_midpoints,
)
from quantail.risk import midpoints


@dataclass(frozen=True)
class LossOutput:
    """Per transition, all [batch]: the loss, the priority it earns, and the predicted mean return."""

    losses: Tensor
    priorities: Tensor
    values: Tensor
    fraction_losses: Tensor | None = None  # of FQF's second network


def compute_loss(
    head: Head,
    features: Tensor,
    actions: Tensor,
    target: Target,
    kappa: float,
    taus: Tensor | None,
) -> LossOutput:
    """The head's own loss for the taken actions; the implicit head's at the levels τ [batch, N]."""
    if isinstance(head, ExpectedValue):
        return _expected(head, features, actions, target, kappa)
    if isinstance(head, Categorical):
        return _categorical(head, features, actions, target)
    if isinstance(head, FixedQuantiles):
        predictions = select_actions(head.distribution(features).atoms, actions)  # [batch, N]
        taus = midpoints(predictions.shape[1]).to(predictions).expand_as(predictions)
        return _quantiles(predictions, taus, target, kappa)
    if isinstance(head, LearnedFractions):
        return _fractions(head, features, actions, target, kappa)
    assert taus is not None
    return _quantiles(select_actions(head.quantiles(features, taus), actions), taus, target, kappa)


def _expected(
    head: ExpectedValue, features: Tensor, actions: Tensor, target: Target, kappa: float
) -> LossOutput:
    """DQN: the Huber loss L_κ of the error δ, whose gradient is δ clipped to ±κ; priority |δ|."""
    predictions = select_actions(head.distribution(features).atoms, actions).squeeze(1)
    delta = target.mean() - predictions
    return LossOutput(huber(delta, kappa), delta.detach().abs(), predictions.detach())


def _categorical(head: Categorical, features: Tensor, actions: Tensor, target: Target) -> LossOutput:
    """C51: the divergence from the projected target, which is Rainbow's priority too."""
    log_probs = select_actions(head.log_probs(features), actions)  # [batch, atoms]
    losses = categorical_divergence(
        log_probs, project(target.atoms, target.probabilities(), head.support)
    )
    values = (log_probs.detach().exp() * head.support).sum(dim=1)
    return LossOutput(losses, losses.detach().clamp(min=0), values)


def _quantiles(predictions: Tensor, taus: Tensor, target: Target, kappa: float) -> LossOutput:
    """QR-DQN and IQN: the quantile Huber loss."""
    losses = quantile_huber_loss(predictions, taus, target.atoms, kappa, target.weights)
    return LossOutput(losses, losses.detach(), predictions.detach().mean(dim=1))


def _fractions(
    head: LearnedFractions, features: Tensor, actions: Tensor, target: Target, kappa: float
) -> LossOutput:
    """FQF: the quantile Huber loss at the proposed levels, and the proposals' own loss.

    Target atoms count by their probability, where the paper counts them equally: only then is the
    target the distribution that the fractions stand for.
    """
    fractions = head.fractions(features)  # [batch, N + 1]
    taus = fraction_midpoints(fractions.detach())
    predictions = select_actions(head.implicit.quantiles(features, taus), actions)
    outcome = _quantiles(predictions, taus, target, kappa)
    with torch.no_grad():
        inner = select_actions(head.implicit.quantiles(features, fractions[:, 1:-1]), actions)
    proposals = fraction_loss(fractions, inner, predictions)
    widths = fractions.detach().diff(dim=1)
    values = (widths * predictions.detach()).sum(dim=1)
    return LossOutput(outcome.losses, outcome.priorities, values, proposals)
