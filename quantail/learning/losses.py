"""Losses as pure functions of tensors."""

from torch import Tensor


def quantile_huber_loss(predictions: Tensor, taus: Tensor, targets: Tensor, kappa: float) -> Tensor:
    """Σ_i E_j[ρ^κ_τi(δ_ij)], δ_ij = target_j − prediction_i: the IQN loss (equation 3).

    predictions [batch, N], taus [batch, N], targets [batch, N'] -> [batch]. The sum is over the N
    predictions, the mean over the N' targets. κ = 0 is the plain quantile loss |τ − 1{δ < 0}| |δ|.
    """
    delta = targets.unsqueeze(1) - predictions.unsqueeze(2)  # [batch, N, N']
    weight = (taus.unsqueeze(2) - (delta.detach() < 0).to(delta.dtype)).abs()
    return (weight * huber(delta, kappa)).mean(dim=2).sum(dim=1)


def huber(delta: Tensor, kappa: float) -> Tensor:
    """L_κ(δ)/κ: δ²/2κ within κ, |δ| − κ/2 beyond; |δ| for κ = 0."""
    size = delta.abs()
    if kappa == 0:
        return size
    inner = size.clamp(max=kappa)
    return inner * (size - 0.5 * inner) / kappa
