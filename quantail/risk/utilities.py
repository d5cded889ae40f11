"""Risk measures that are not distortions: mean and spread, entropic risk, expected utility."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError
from quantail.risk.measures import DecisionContext, RiskMeasure, Slider


@dataclass(frozen=True)
class MeanStd(RiskMeasure):
    """Mean minus a multiple of the standard deviation: E[Z] − η std(Z).

    It is not monotone: a rare higher return may raise the deviation more than the mean.

    Args:
        eta: Risk-averse above 0, risk-seeking below; −100 to 100.
    """

    eta: float
    name = "mean-std"
    summary = "the mean minus η standard deviations: averse above 0, seeking below"
    takes = "a number from -100 to 100"
    neutral_eta = 0.0
    slider = Slider(-3.0, 3.0, 0.05, 1.0, "risk-seeking", "risk-averse")
    monotone = False

    def in_range(self) -> bool:
        return -100 <= self.eta <= 100

    def value(self, z: ReturnDistribution, context: DecisionContext | None = None) -> Tensor:
        return z.mean() - self.eta * z.std()


@dataclass(frozen=True)
class Entropic(RiskMeasure):
    """Entropic risk, the certainty equivalent of exponential utility: −(1/η) log E[exp(−ηZ)].

    Args:
        eta: Risk-averse above 0, risk-seeking below; −100 to 100.
    """

    eta: float
    name = "entropic"
    summary = "entropic risk, -(1/η) log E(exp(-η Z)): averse above 0, seeking below"
    takes = "a number from -100 to 100"
    neutral_eta = 0.0
    slider = Slider(-5.0, 5.0, 0.05, 1.0, "risk-seeking", "risk-averse")

    def in_range(self) -> bool:
        return -100 <= self.eta <= 100

    def value(self, z: ReturnDistribution, context: DecisionContext | None = None) -> Tensor:
        if self.eta == 0:
            return z.mean()
        probs = z.probabilities()
        impossible = probs == 0  # kept out of the logarithm, whose gradient is infinite at 0
        logs = torch.where(impossible, -torch.inf, torch.where(impossible, 1.0, probs).log())
        return -torch.logsumexp(logs - self.eta * z.atoms, dim=-1) / self.eta


class ExpectedUtility(RiskMeasure):
    """E[U(Z)], the expected utility of von Neumann and Morgenstern; subclasses define U."""

    def utility(self, returns: Tensor) -> Tensor:
        """Return U(z)."""
        raise NotImplementedError

    def value(self, z: ReturnDistribution, context: DecisionContext | None = None) -> Tensor:
        return z.expectation(self.utility)


@dataclass(frozen=True)
class ExpUtility(ExpectedUtility):
    """Expected exponential utility, E[(1 − exp(−ηZ))/η]. It ranks actions as `Entropic` does.

    Args:
        eta: Risk-averse above 0, risk-seeking below; −100 to 100.
    """

    eta: float
    name = "exp-utility"
    summary = "expected exponential utility, (1 - exp(-η z))/η: averse above 0, seeking below"
    takes = "a number from -100 to 100"
    neutral_eta = 0.0

    def in_range(self) -> bool:
        return -100 <= self.eta <= 100

    def utility(self, returns: Tensor) -> Tensor:
        return returns if self.eta == 0 else -torch.expm1(-self.eta * returns) / self.eta


@dataclass(frozen=True)
class Prospect(ExpectedUtility):
    """Expected value of gains and losses, as in prospect theory (Kahneman and Tversky).

    Its value function is x^0.88 for gains and −λ |x|^0.88 for losses.

    x is the return relative to a reference point. The curvature and λ = 2.25 are those of Tversky and
    Kahneman 1992. Probabilities are not weighted; `CPW` does that.

    Args:
        loss_aversion: λ.
        reference: The return that is neither a gain nor a loss.
    """

    loss_aversion: float = 2.25
    reference: float = 0.0
    name = "prospect"
    summary = "prospect theory's value of gains and losses: prospect:LOSS_AVERSION,REFERENCE"
    takes = "a loss aversion from 0 to 1000 and a reference point, such as 2.25,0"
    exponent = 0.88

    def in_range(self) -> bool:
        return 0 <= self.loss_aversion <= 1000 and abs(self.reference) < 1e30

    def utility(self, returns: Tensor) -> Tensor:
        gain = returns - self.reference
        # Where the gain is zero the slope of x^0.88 is infinite: keep it out of the gradient.
        size = torch.where(gain == 0, 1.0, gain.abs()) ** self.exponent
        size = torch.where(gain == 0, 0.0, size)
        return torch.where(gain < 0, -self.loss_aversion * size, size)


@dataclass(frozen=True)
class CustomUtility(ExpectedUtility):
    """A user's own utility function, checked once to be finite and not to decrease."""

    function: Callable[[Tensor], Tensor]
    text: str
    name = "utility"
    summary = "expected utility with your own U: utility:module:function"

    def __post_init__(self) -> None:
        grid = torch.linspace(-10, 10, 257)
        try:
            answer = torch.as_tensor(self.function(grid))
        except Exception as error:
            raise QuantailError(f"risk {self} failed on a tensor of returns: {error}") from error
        if answer.shape != grid.shape or not bool(answer.isfinite().all()):
            raise QuantailError(f"risk {self} must return one finite number for each return.")
        if bool((answer.diff() < 0).any()):
            raise QuantailError(f"risk {self} must not decrease: a larger return is never worse.")

    def utility(self, returns: Tensor) -> Tensor:
        return torch.as_tensor(self.function(returns)).to(returns.dtype)

    def __str__(self) -> str:
        return self.text
