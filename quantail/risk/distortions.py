"""Distortion risk measures: the mean of Z at β(τ), with β a map of τ ∈ [0, 1] into [0, 1].

An action is worth Q_β = E[Z_β(τ)] for uniform τ. Each measure is a small frozen dataclass that can be
called with τ (a tensor, an array or a number), and whose `str` is the text form used on the command
line: `cvar:0.25`.
"""

from dataclasses import dataclass
from typing import Any, overload

import torch
from numpy.typing import NDArray
from torch import Tensor

from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError
from quantail.risk.inversion import BisectedInverse, apply_inside, bates_quantile, irwin_hall_cdf
from quantail.risk.measures import DecisionContext, RiskMeasure, Slider, TauMap


class Distortion(RiskMeasure):
    """A measure that is given by its map β of the quantile fraction τ."""

    def distort(self, tau: Tensor) -> Tensor:
        """Return β(τ)."""
        raise NotImplementedError

    def inverse(self, probability: Tensor) -> Tensor:
        """Return β⁻¹(c), the share of uniform τ that β maps to c or below, by bisection.

        The gradient is 1/β′(β⁻¹(c)), and 0 where β jumps over c or does not reach it. Measures with a
        closed form override this.
        """
        inverse: Tensor = BisectedInverse.apply(probability, self)  # type: ignore[no-untyped-call]
        return inverse

    def slope(self, tau: Tensor) -> Tensor:
        """Return β′(τ): by automatic differentiation, or by finite differences where β has no graph."""
        with torch.enable_grad():
            point = tau.detach().requires_grad_()
            mapped = self.distort(point)
            if mapped.requires_grad:
                return torch.autograd.grad(mapped.sum(), point)[0]
        low, high = (tau - 1e-5).clamp(min=0), (tau + 1e-5).clamp(max=1)
        return (self.distort(high) - self.distort(low)) / (high - low)

    def value(self, z: ReturnDistribution, context: DecisionContext | None = None) -> Tensor:
        return z.distorted(self.inverse)

    @property
    def tau_map(self) -> TauMap | None:
        return self.distort

    def tau_weights(self, edges: Tensor) -> Tensor:
        return self.inverse(edges).diff()

    @overload
    def __call__(self, tau: Tensor) -> Tensor: ...
    @overload
    def __call__(self, tau: float) -> float: ...
    @overload
    def __call__(self, tau: NDArray[Any]) -> NDArray[Any]: ...
    def __call__(self, tau: Tensor | float | NDArray[Any]) -> Tensor | float | NDArray[Any]:
        if isinstance(tau, Tensor):
            return self.distort(tau)
        if isinstance(tau, int | float):
            return float(self.distort(torch.tensor(tau, dtype=torch.float64)))
        answer: NDArray[Any] = self.distort(torch.as_tensor(tau)).numpy()
        return answer


@dataclass(frozen=True)
class Neutral(Distortion):
    """Maximise the mean: β(τ) = τ."""

    name = "neutral"
    summary = "the mean return: no preference about risk"
    is_neutral = True

    def value(self, z: ReturnDistribution, context: DecisionContext | None = None) -> Tensor:
        return z.mean()

    def distort(self, tau: Tensor) -> Tensor:
        return tau

    def inverse(self, probability: Tensor) -> Tensor:
        return probability


@dataclass(frozen=True)
class CPW(Distortion):
    """Weight probabilities as cumulative prospect theory does: β(τ) = τ^η / (τ^η + (1 − τ)^η)^(1/η).

    Args:
        eta: Between 0.28 and 1, both tails count less; 0.71 fits people's choices. 1 is the mean.
    """

    eta: float
    name = "cpw"
    summary = (
        "cumulative probability weighting: below 1 both tails count less; 0.71 is the paper's value"
    )
    takes = "a number from 0.28 (below that the map is not monotone) to 1000"
    neutral_eta = 1.0
    slider = Slider(0.3, 1.5, 0.01, 0.71, "less weight on the tails", "more")

    def in_range(self) -> bool:
        return 0.28 <= self.eta <= 1000

    def distort(self, tau: Tensor) -> Tensor:
        # In logarithms, so that a large η cannot underflow to 0/0.
        a, b = self.eta * tau.log(), self.eta * torch.log1p(-tau)
        return torch.exp(a - torch.logaddexp(a, b) / self.eta)


@dataclass(frozen=True)
class Wang(Distortion):
    """Shift the quantile fractions of a normal distribution: β(τ) = Φ(Φ⁻¹(τ) + η).

    Args:
        eta: Risk-averse below 0, risk-seeking above; −100 to 100.
    """

    eta: float
    name = "wang"
    summary = "shifts a normal return by η deviations: averse below 0, seeking above"
    takes = "a number from -100 to 100"
    neutral_eta = 0.0
    slider = Slider(-3.0, 3.0, 0.05, -0.75, "risk-averse", "risk-seeking")

    def in_range(self) -> bool:
        return -100 <= self.eta <= 100

    def distort(self, tau: Tensor) -> Tensor:
        shifted: Tensor = torch.special.ndtr(torch.special.ndtri(tau) + self.eta)
        return shifted

    def inverse(self, probability: Tensor) -> Tensor:
        return apply_inside(Wang(-self.eta).distort, probability)


@dataclass(frozen=True)
class Pow(Distortion):
    """Weight the quantile fractions by a power.

    β(τ) is τ^(1/(1+|η|)) for η ≥ 0, and its mirror 1 − (1 − τ)^(1/(1+|η|)) for η < 0.

    Args:
        eta: Risk-averse below 0, risk-seeking above; −1000 to 1000.
    """

    eta: float
    name = "pow"
    summary = "power weighting: averse below 0, seeking above"
    takes = "a number from -1000 to 1000"
    neutral_eta = 0.0
    slider = Slider(-5.0, 5.0, 0.1, -2.0, "risk-averse", "risk-seeking")

    def in_range(self) -> bool:
        return -1000 <= self.eta <= 1000

    def distort(self, tau: Tensor) -> Tensor:
        exponent = 1.0 / (1.0 + abs(self.eta))
        if self.eta >= 0:
            return tau**exponent
        # 1 − (1 − τ)^e without the cancellation near τ = 0.
        return -torch.expm1(exponent * torch.log1p(-tau))

    def inverse(self, probability: Tensor) -> Tensor:
        power = 1.0 + abs(self.eta)
        if self.eta >= 0:
            return probability**power
        return apply_inside(lambda inner: -torch.expm1(power * torch.log1p(-inner)), probability)


@dataclass(frozen=True)
class CVaR(Distortion):
    """Maximise the mean of the worst fraction η of returns (conditional value at risk): β(τ) = ητ.

    Args:
        eta: The fraction, from 1e-6 to 1. 1 is the mean.
    """

    eta: float
    name = "cvar"
    summary = "the mean of the worst fraction η of returns: averse"
    takes = "a number from 1e-6 to 1"
    neutral_eta = 1.0
    slider = Slider(0.01, 1.0, 0.01, 0.1, "risk-averse", "neutral")

    def in_range(self) -> bool:
        return 1e-6 <= self.eta <= 1

    def distort(self, tau: Tensor) -> Tensor:
        return self.eta * tau

    def inverse(self, probability: Tensor) -> Tensor:
        return (probability / self.eta).clamp(max=1)


@dataclass(frozen=True)
class Norm(Distortion):
    """Give less weight to both tails: β is the quantile function of the mean of η uniform variables.

    Args:
        eta: Number of uniform variables, from 1, which is the mean, to 30.
    """

    eta: int
    name = "norm"
    summary = "the mean of η uniform quantile fractions: ignores both tails"
    takes = "a whole number from 1 to 30"
    slider = Slider(1, 30, 1, 3, "neutral", "tails ignored")

    def in_range(self) -> bool:
        return self.eta in range(1, 31)

    def distort(self, tau: Tensor) -> Tensor:
        if self.eta == 1:
            return tau
        # The distribution is symmetric about ½: solve the lower half, mirror the upper one.
        upper = tau > 0.5
        lower = bates_quantile(torch.where(upper, 1 - tau, tau).double(), int(self.eta))
        return torch.where(upper, 1 - lower, lower).to(tau.dtype)

    def inverse(self, probability: Tensor) -> Tensor:
        n, upper = int(self.eta), probability > 0.5
        below = irwin_hall_cdf(n * torch.where(upper, 1 - probability, probability).double(), n)
        return torch.where(upper, 1 - below, below).to(probability.dtype)


@dataclass(frozen=True)
class Custom(Distortion):
    """A user's own map of τ, checked once to be a distortion."""

    map: TauMap
    text: str = ""  # module:function, where it can be imported again
    name = "custom"
    summary = "your own map of τ"

    def __post_init__(self) -> None:
        if not self.text:
            object.__setattr__(self, "text", _importable_name(self.map))
        for dtype in (torch.float32, torch.float64):  # samples come in single, probabilities in double
            grid = torch.linspace(0, 1, 257, dtype=dtype)
            try:
                answer = torch.as_tensor(self.map(grid))
            except Exception as error:
                raise QuantailError(f"risk {self} failed on a {dtype} tensor of τ: {error}") from error
            if answer.shape != grid.shape:
                raise QuantailError(
                    f"risk {self} must return one value for each τ: "
                    f"it got shape {tuple(grid.shape)} and returned {tuple(answer.shape)}."
                )
            inside = bool(((answer >= 0) & (answer <= 1)).all())
            if not inside or bool((answer.diff() < -1e-6).any()):
                raise QuantailError(
                    f"risk {self} must map [0, 1] into [0, 1] and must not decrease in τ."
                )

    def distort(self, tau: Tensor) -> Tensor:
        return torch.as_tensor(self.map(tau)).to(tau.dtype)

    def __str__(self) -> str:
        return self.text


def _importable_name(function: TauMap) -> str:
    module = getattr(function, "__module__", type(function).__module__)
    return f"{module}:{getattr(function, '__qualname__', type(function).__name__)}"
