"""A risk measure with two parameters."""

from dataclasses import dataclass, replace

from torch import Tensor

from quantail.distributions import ReturnDistribution
from quantail.risk import CVaR, DecisionContext, RiskMeasure


@dataclass(frozen=True)
class Spread(RiskMeasure):
    """E[Z] − λ (E[Z] − CVaR_α[Z]): `spread:0.1,0.5` has α = 0.1 and λ = 0.5.

    λ = 0 is the mean, λ = 1 is CVaR.
    """

    alpha: float
    weight: float
    summary = "the mean minus λ times how far the mean of the worst fraction α is below it"
    takes = "a fraction α from 1e-6 to 1 and a weight λ from 0 to 1, such as 0.1,0.5"
    neutral_eta = 0.0  # λ of the mean, from which `annealed` starts

    def in_range(self) -> bool:
        return 1e-6 <= self.alpha <= 1 and 0 <= self.weight <= 1

    def value(self, z: ReturnDistribution, context: DecisionContext | None = None) -> Tensor:
        mean = z.mean()
        return mean - self.weight * (mean - CVaR(self.alpha).value(z))

    def annealed(self, fraction: float) -> "Spread":
        """Return the measure on its way from the mean: `--risk-anneal-steps` asks for it."""
        return replace(self, weight=self.weight * min(fraction, 1.0))
