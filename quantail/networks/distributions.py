"""The distribution of the return as weighted atoms, and what can be read off it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from quantail.risk import Neutral, RiskMeasure


@dataclass(frozen=True)
class ReturnDistribution:
    """A distribution for each state and action: atoms [batch, M, actions] and their probabilities.

    Weights are [batch, M, actions], or [batch, M, 1] where all actions share them, or None where each
    atom has the probability 1/M.
    """

    atoms: Tensor
    weights: Tensor | None = None

    def mean(self) -> Tensor:
        """[batch, actions]."""
        return expectation(self.atoms, self.weights)

    def value(self, risk: RiskMeasure) -> Tensor:
        """Q_β = Σ_i z_i (β⁻¹(c_i) − β⁻¹(c_{i−1})), z sorted and c cumulated, exactly."""
        if isinstance(risk, Neutral) or self.atoms.shape[1] == 1:
            return self.mean()
        atoms, cumulated = self._sorted()
        edges = risk.inverse(cumulated)
        shares = edges.diff(dim=1, prepend=torch.zeros_like(edges[:, :1]))
        return (shares.to(atoms) * atoms).sum(dim=1)

    def quantiles(self, taus: Tensor) -> Tensor:
        """F⁻¹(τ), the least atom z with F(z) ≥ τ: taus [batch, T] -> [batch, T, actions]."""
        atoms, cumulated = self._sorted()
        edges = cumulated.to(atoms).expand_as(atoms).transpose(1, 2).contiguous()
        levels = taus.unsqueeze(1).expand(-1, atoms.shape[2], -1).contiguous()  # [batch, actions, T]
        index = torch.searchsorted(edges, levels)
        return atoms.gather(1, index.clamp(max=atoms.shape[1] - 1).transpose(1, 2))

    def _sorted(self) -> tuple[Tensor, Tensor]:
        """Return sorted atoms and their cumulated probabilities, [batch, M, actions] or [1, M, 1].

        Probabilities are cumulated and normalised in float64, so that rounding does not swallow a rare
        upper tail, and on the CPU, where every map of τ runs.
        """
        atoms, order = self.atoms.sort(dim=1)
        if self.weights is None:
            steps = torch.arange(1, atoms.shape[1] + 1, dtype=torch.float64) / atoms.shape[1]
            return atoms, steps.view(1, -1, 1)
        weights = self.weights.expand_as(atoms).gather(1, order)
        cumulated = weights.cpu().double().cumsum(dim=1)
        return atoms, cumulated / cumulated[:, -1:]


def expectation(atoms: Tensor, weights: Tensor | None) -> Tensor:
    """The mean over axis 1 of atoms with these probabilities, or equal ones."""
    return atoms.mean(dim=1) if weights is None else (weights * atoms).sum(dim=1)
