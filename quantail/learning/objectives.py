"""How far each head's prediction is from a target law."""

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
from quantail.learning.targets import Target, taken
from quantail.networks.heads import (
    Categorical,
    ExpectedValue,
    FixedQuantiles,
    Head,
    LearnedFractions,
    between,
)
from quantail.risk import midpoints


@dataclass(frozen=True)
class Outcome:
    """Per transition, all [batch]: the loss, the priority it earns, and the predicted mean return."""

    losses: Tensor
    priorities: Tensor
    values: Tensor
    fraction_losses: Tensor | None = None  # of FQF's second network


def compare(
    head: Head,
    features: Tensor,
    actions: Tensor,
    target: Target,
    kappa: float,
    taus: Tensor | None,
) -> Outcome:
    """The head's own loss for the taken actions; the implicit head's at the levels τ [batch, N]."""
    if isinstance(head, ExpectedValue):
        return _expected(head, features, actions, target, kappa)
    if isinstance(head, Categorical):
        return _categorical(head, features, actions, target)
    if isinstance(head, FixedQuantiles):
        predictions = taken(head.law(features).atoms, actions)  # [batch, N]
        taus = midpoints(predictions.shape[1]).to(predictions).expand_as(predictions)
        return _quantiles(predictions, taus, target, kappa)
    if isinstance(head, LearnedFractions):
        return _fractions(head, features, actions, target, kappa)
    assert taus is not None
    return _quantiles(taken(head.quantiles(features, taus), actions), taus, target, kappa)


def _expected(
    head: ExpectedValue, features: Tensor, actions: Tensor, target: Target, kappa: float
) -> Outcome:
    """DQN: the Huber loss L_κ of the error δ, whose gradient is δ clipped to ±κ; priority |δ|."""
    predictions = taken(head.law(features).atoms, actions).squeeze(1)
    delta = target.mean() - predictions
    return Outcome(huber(delta, kappa), delta.detach().abs(), predictions.detach())


def _categorical(head: Categorical, features: Tensor, actions: Tensor, target: Target) -> Outcome:
    """C51: the divergence from the projected target, which is Rainbow's priority too."""
    log_chances = taken(head.log_chances(features), actions)  # [batch, atoms]
    losses = categorical_divergence(log_chances, project(target.atoms, target.chances(), head.support))
    values = (log_chances.detach().exp() * head.support).sum(dim=1)
    return Outcome(losses, losses.detach().clamp(min=0), values)


def _quantiles(predictions: Tensor, taus: Tensor, target: Target, kappa: float) -> Outcome:
    """QR-DQN and IQN: the quantile Huber loss."""
    losses = quantile_huber_loss(predictions, taus, target.atoms, kappa, target.weights)
    return Outcome(losses, losses.detach(), predictions.detach().mean(dim=1))


def _fractions(
    head: LearnedFractions, features: Tensor, actions: Tensor, target: Target, kappa: float
) -> Outcome:
    """FQF: the quantile Huber loss at the proposed levels, and the proposals' own loss.

    Target atoms count by their chance, where the paper counts them equally: only so is the target the
    law that the fractions stand for.
    """
    fractions = head.fractions(features)  # [batch, N + 1]
    taus = between(fractions.detach())
    predictions = taken(head.implicit.quantiles(features, taus), actions)
    outcome = _quantiles(predictions, taus, target, kappa)
    with torch.no_grad():
        inner = taken(head.implicit.quantiles(features, fractions[:, 1:-1]), actions)
    proposals = fraction_loss(fractions, inner, predictions)
    widths = fractions.detach().diff(dim=1)
    values = (widths * predictions.detach()).sum(dim=1)
    return Outcome(outcome.losses, outcome.priorities, values, proposals)
