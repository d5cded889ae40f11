"""Inverses of maps β of τ: by bisection for any map, and those of the mean of several uniforms."""

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from quantail.risk.measures import TauMap

if TYPE_CHECKING:
    from quantail.risk.distortions import Distortion

HALVINGS = 32


class BisectedInverse(torch.autograd.Function):
    """β⁻¹ of any measure, which need be neither continuous nor strictly increasing."""

    @staticmethod
    def forward(ctx: Any, probability: Tensor, measure: "Distortion") -> Tensor:
        low, high = torch.zeros_like(probability), torch.ones_like(probability)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = measure.distort(middle) <= probability
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        inverse = torch.where(probability >= 1, torch.ones_like(probability), (low + high) / 2)
        ctx.measure = measure
        ctx.save_for_backward(probability, inverse)
        return inverse

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        probability, inverse = ctx.saved_tensors
        slope = ctx.measure.slope(inverse)
        # Bisection leaves an error of 2^-HALVINGS in τ; a larger gap is a jump of β.
        missed = (ctx.measure.distort(inverse) - probability).abs()
        reached = missed <= 1e-6 + 4 * slope.abs() * 2.0**-HALVINGS
        rises = reached & slope.isfinite() & (slope > 0)
        return gradient * torch.where(rises, 1 / slope.where(rises, 1.0), 0.0), None


def apply_inside(inverse: TauMap, probability: Tensor) -> Tensor:
    """Apply β⁻¹ within (0, 1) and keep 0 and 1, where its gradient would be 0·∞."""
    within = (probability > 0) & (probability < 1)
    return torch.where(within, inverse(torch.where(within, probability, 0.5)), probability)


def bates_quantile(probability: Tensor, n: int) -> Tensor:
    """Inverse of the CDF of the mean of n uniforms, for probabilities up to ½, in float64."""
    # Up to one, the CDF of the sum is xⁿ/n!, which inverts exactly; beyond it, bisect.
    exact = torch.exp((probability.log() + math.lgamma(n + 1)) / n)
    low = torch.ones_like(probability)
    high = torch.full_like(probability, n / 2)
    for _ in range(54):
        middle = (low + high) / 2
        below = irwin_hall_cdf(middle, n) < probability
        low = torch.where(below, middle, low)
        high = torch.where(below, high, middle)
    return torch.where(exact <= 1, exact, (low + high) / 2) / n


def irwin_hall_cdf(x: Tensor, n: int) -> Tensor:
    """P(U₁ + … + Uₙ ≤ x) = Σ_k (−1)^k C(n, k) (x − k)₊ⁿ / n!, for x up to n/2."""
    total = torch.zeros_like(x)
    for k in range(n // 2 + 1):
        scale = (-1.0) ** k * math.comb(n, k) / math.factorial(n)
        total += scale * (x - k).clamp(min=0) ** n
    return total
