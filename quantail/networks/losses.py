"""Losses as pure functions of tensors."""

import math
from typing import Any

import torch
from torch import Tensor

from quantail.networks.kernels import applies, load_kernels


def quantile_huber_loss(
    predictions: Tensor,
    taus: Tensor,
    targets: Tensor,
    kappa: float,
    weights: Tensor | None = None,
    compiled: bool = False,
) -> Tensor:
    """Σ_i E_j[ρ^κ_τi(δ_ij)], δ_ij = target_j − prediction_i: the IQN loss (equation 3).

    predictions [batch, N], taus [batch, N], targets [batch, N'] -> [batch]. The sum is over the N
    predictions, the mean over the N' targets, whose probabilities are `weights` or equal.
    κ = 0 is the plain quantile loss |τ − 1{δ < 0}| |δ|. Gradients go to the predictions and to τ.
    `compiled` asks for the compiled kernel, where it applies.
    """
    probabilities = torch.full_like(targets, 1 / targets.shape[1]) if weights is None else weights
    given = (predictions, taus, targets, probabilities)
    compiled = compiled and all(applies(one) and one.dtype == torch.float32 for one in given)
    losses: Tensor = _QuantileHuber.apply(  # type: ignore[no-untyped-call]
        *given, kappa, compiled
    )
    return losses


class _QuantileHuber(torch.autograd.Function):
    """Compute the slopes together with the loss: half as many passes over [batch, N, N'], or fewer."""

    @staticmethod
    def forward(
        ctx: Any,
        predictions: Tensor,
        taus: Tensor,
        targets: Tensor,
        probabilities: Tensor,
        kappa: float,
        compiled: bool,
    ) -> Tensor:
        if compiled:
            given = (predictions, taus, targets, probabilities)
            losses, of_predictions, of_taus = load_kernels().quantile_huber_slopes(*given, kappa)
            ctx.save_for_backward(of_predictions, of_taus)
            return losses  # type: ignore[no-any-return]
        delta = targets.unsqueeze(1) - predictions.unsqueeze(2)  # [batch, N, N']
        tau, probability = taus.unsqueeze(2), probabilities.unsqueeze(1)
        below = delta < 0
        weight = torch.where(below, 1 - tau, tau).mul_(probability)
        inner = delta.clamp(-kappa, kappa).div_(kappa) if kappa else delta.sign()  # ∂L_κ/∂δ
        sizes = delta.sub_(inner, alpha=kappa / 2).mul_(inner)  # L_κ(δ)/κ
        of_taus = None
        if ctx.needs_input_grad[1]:
            of_taus = torch.where(below, -sizes, sizes).mul_(probability).sum(dim=2)
        losses = (sizes * weight).sum(dim=(1, 2))
        ctx.save_for_backward(weight.mul_(inner).sum(dim=2).neg_(), of_taus)
        return losses

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        slopes, of_taus = ctx.saved_tensors
        scale = gradient.unsqueeze(1)
        of_taus = of_taus * scale if ctx.needs_input_grad[1] else None
        return slopes * scale, of_taus, None, None, None, None


def huber(delta: Tensor, kappa: float) -> Tensor:
    """Return L_κ(δ): δ²/2 where |δ| ≤ κ, κ(|δ| − κ/2) beyond, so a large κ gives the plain square."""
    size = delta.abs()
    inner = size.clamp(max=kappa)
    return inner * (size - 0.5 * inner)


def project(atoms: Tensor, weights: Tensor, support: Tensor) -> Tensor:
    """Φ of C51: share each atom's probability between its two neighbours on an evenly spaced support.

    atoms [batch, M], weights [batch, M], support [S] -> probabilities [batch, S].
    Atoms beyond the support are moved to its ends.
    """
    gap = support[1] - support[0]
    inside = atoms.clamp(min=support[0], max=support[-1])
    distance = (inside.unsqueeze(2) - support).abs() / gap  # [batch, M, S]
    return (weights.unsqueeze(2) * (1 - distance).clamp(min=0)).sum(dim=1)


def categorical_divergence(log_probs: Tensor, targets: Tensor) -> Tensor:
    """D_KL(target ‖ prediction), C51's loss and Rainbow's priority: [batch, S] twice -> [batch]."""
    return (torch.xlogy(targets, targets) - targets * log_probs).sum(dim=1)


def gaussian_histogram(means: Tensor, edges: Tensor, sigma: float) -> Tensor:
    """Return the probabilities of bins under N(mean, σ²), given that it falls into one (HL-Gauss).

    means [batch], within the edges; edges [S + 1], rising -> [batch, S].
    """
    # Φ(x) = (1 + erf(x/√2))/2, whose constants cancel.
    below = torch.erf((edges - means.unsqueeze(1)) / (sigma * math.sqrt(2)))  # [batch, S + 1]
    return below.diff(dim=1) / (below[:, -1:] - below[:, :1])


def cross_entropy(log_probs: Tensor, targets: Tensor) -> Tensor:
    """Return −Σ_i target_i log p_i: [batch, S] twice -> [batch]."""
    return -(targets * log_probs).sum(dim=1)


def fraction_loss(fractions: Tensor, at_fractions: Tensor, at_midpoints: Tensor) -> Tensor:
    """A loss whose gradient in τ_i is ∂W₁/∂τ_i = 2F⁻¹(τ_i) − F⁻¹(τ̂_i) − F⁻¹(τ̂_{i−1}) (FQF).

    fractions [batch, N + 1] from 0 to 1, F⁻¹ at the inner ones [batch, N − 1] and at the midpoints τ̂
    [batch, N] -> [batch].
    """
    slope = 2 * at_fractions - at_midpoints[:, 1:] - at_midpoints[:, :-1]
    return (slope.detach() * fractions[:, 1:-1]).sum(dim=1)
