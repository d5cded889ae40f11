"""The law of the return as weighted atoms, and what can be read off it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from quantail.risk import Neutral, RiskMeasure


@dataclass(frozen=True)
class Law:
    """A law for each state and action: atoms [batch, M, actions], and the chance of each of them.

    Weights are [batch, M, actions], or [batch, M, 1] where all actions share them, or None where each
    atom has the chance 1/M.
    """

    atoms: Tensor
    weights: Tensor | None = None

    def mean(self) -> Tensor:
        """[batch, actions]."""
        if self.weights is None:
            return self.atoms.mean(dim=1)
        return (self.weights * self.atoms).sum(dim=1)

    def value(self, risk: RiskMeasure) -> Tensor:
        """Q_β = Σ_i z_i (β⁻¹(c_i) − β⁻¹(c_{i−1})), z rising and c their cumulated chances, exactly."""
        if isinstance(risk, Neutral) or self.atoms.shape[1] == 1:
            return self.mean()
        atoms, cumulated = self._sorted()
        # On the CPU, where every map of τ runs.
        edges = risk.inverse(cumulated.cpu()).to(atoms)
        shares = edges.diff(dim=1, prepend=torch.zeros_like(edges[:, :1]))
        return (shares * atoms).sum(dim=1)

    def quantiles(self, taus: Tensor) -> Tensor:
        """F⁻¹(τ), the least atom z with F(z) ≥ τ: taus [batch, T] -> [batch, T, actions]."""
        atoms, cumulated = self._sorted()
        actions = atoms.shape[2]
        levels = taus.unsqueeze(1).expand(-1, actions, -1).contiguous()  # [batch, actions, T]
        index = torch.searchsorted(cumulated.transpose(1, 2).contiguous(), levels)
        return atoms.gather(1, index.clamp(max=atoms.shape[1] - 1).transpose(1, 2))

    def _sorted(self) -> tuple[Tensor, Tensor]:
        """Atoms in rising order and their cumulated chances, both [batch, M, actions]."""
        atoms, order = self.atoms.sort(dim=1)
        if self.weights is None:
            steps = torch.arange(1, atoms.shape[1] + 1, device=atoms.device, dtype=torch.float64)
            cumulated = (steps / atoms.shape[1]).to(atoms.dtype).view(1, -1, 1).expand_as(atoms)
        else:
            cumulated = self.weights.expand_as(atoms).gather(1, order).cumsum(dim=1)
            cumulated[:, -1] = 1
        return atoms, cumulated
