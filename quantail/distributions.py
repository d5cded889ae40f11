"""The one return distribution: finitely many returns and their probabilities.

Heads, targets, trained agents, tabular worlds and evaluation all hand out a `ReturnDistribution`, so
risk measures, plots and distances are written once.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

SAME = 1e-12  # float64 returns or probabilities closer than this count as equal


@dataclass(frozen=True)
class ReturnDistribution:
    """Return distributions with finitely many atoms, along any batch axes.

        z = ReturnDistribution.of([0.0, 1.0, 5.0])
        z.mean(), z.quantile([0.1, 0.9]), CVaR(0.1).value(z)

    Attributes:
        atoms: The returns, [..., M]. Heads give [batch, actions, M], targets [batch, M], and tabular
            worlds [M].
        probs: The probabilities of the atoms, which broadcast against them; None means 1/M each.
        comonotone: Whether atom i belongs to the same quantile fraction τ_i for every action, as for
            heads that evaluate all actions at the same τ.
    """

    atoms: Tensor
    probs: Tensor | None = None
    comonotone: bool = False

    @classmethod
    def of(cls, returns: ArrayLike, probs: ArrayLike | None = None) -> "ReturnDistribution":
        """Return the distribution of plain numbers or arrays, in float64."""
        atoms = torch.from_numpy(np.array(returns, np.float64))
        return cls(atoms, None if probs is None else torch.from_numpy(np.array(probs, np.float64)))

    @property
    def shape(self) -> torch.Size:
        """The batch axes."""
        return self.atoms.shape[:-1]

    def probabilities(self) -> Tensor:
        """Return the probability of every atom, in the shape of the atoms."""
        if self.probs is None:
            return torch.full_like(self.atoms, 1 / self.atoms.shape[-1])
        return self.probs.expand_as(self.atoms)

    def expectation(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Return E[u(Z)], [...]; an atom of probability 0 does not count, even where u is infinite."""
        values = function(self.atoms)
        if self.probs is None:
            return values.mean(dim=-1)
        return torch.where(self.probs == 0, 0.0, self.probs * values).sum(dim=-1)

    def mean(self) -> Tensor:
        """Return E[Z], [...]."""
        if self.probs is None:
            return self.atoms.mean(dim=-1)
        return (self.probs * self.atoms).sum(dim=-1)

    def std(self) -> Tensor:
        """Return the standard deviation, [...]."""
        centred = ReturnDistribution(self.atoms - self.mean().unsqueeze(-1), self.probs)
        variance = centred.expectation(torch.square)
        spread = variance > 0  # avoid the root at 0, where its slope is infinite
        return torch.where(spread, torch.where(spread, variance, 1.0).sqrt(), 0.0)

    def quantile(self, taus: Tensor | ArrayLike) -> Tensor:
        """Return F⁻¹(τ), the least atom z with F(z) ≥ τ: taus [..., T] -> [..., T].

        The axes of `taus` before the last broadcast against the batch axes.
        """
        atoms, cumulated = self.sorted()
        taus = _as_tensor(taus)
        cumulated = cumulated.to(atoms).expand_as(atoms).contiguous()
        wanted = taus.to(atoms).expand(*self.shape, taus.shape[-1]).contiguous()
        index = torch.searchsorted(cumulated, wanted - _tolerance(atoms)).clamp(max=atoms.shape[-1] - 1)
        return atoms.gather(-1, index)

    def cdf(self, returns: Tensor | ArrayLike) -> Tensor:
        """Return P(Z ≤ x): returns [..., X] -> [..., X]."""
        atoms, cumulated = self.sorted()
        returns = _as_tensor(returns)
        wanted = returns.to(atoms).expand(*self.shape, returns.shape[-1]).contiguous()
        index = torch.searchsorted(atoms.contiguous(), wanted, right=True)
        padded = torch.nn.functional.pad(cumulated.expand(atoms.shape), (1, 0)).to(atoms.device)
        return padded.gather(-1, index)

    def distorted(self, inverse: Callable[[Tensor], Tensor]) -> Tensor:
        """Return Q_β = Σ_i z_i (β⁻¹(c_i) − β⁻¹(c_{i−1})), with z sorted and c cumulated, [...].

        This is ∫ F⁻¹(β(τ)) dτ, exactly, and differentiable in atoms and probabilities.
        """
        if self.atoms.shape[-1] == 1:
            return self.atoms.squeeze(-1)
        atoms, cumulated = self.sorted()
        edges = inverse(cumulated)
        shares = edges.diff(dim=-1, prepend=torch.zeros_like(edges[..., :1]))
        return (shares.to(atoms) * atoms).sum(dim=-1)

    def affine(self, shift: Tensor | float, scale: Tensor | float) -> "ReturnDistribution":
        """Return the distribution of shift + scale · Z; both [...] or numbers, scale ≥ 0."""
        shift, scale = (
            x.unsqueeze(-1) if isinstance(x, Tensor) and x.ndim else x for x in (shift, scale)
        )
        return ReturnDistribution(shift + scale * self.atoms, self.probs, self.comonotone)

    def select(self, actions: Tensor) -> "ReturnDistribution":
        """Return the distribution of one action per state: [B, A, M] and actions [B] -> [B, M]."""
        probs = self.probs
        if probs is not None:
            probs = select_actions(probs.expand_as(self.atoms), actions)
        return ReturnDistribution(select_actions(self.atoms, actions), probs)

    def mixture(self, policy: Tensor, shift: Tensor | None = None) -> "ReturnDistribution":
        """Return Σ_a π(a) (Z_a + shift_a): [B, A, M], policy and shift [B, A].

        Comonotone atoms are averaged quantile fraction by quantile fraction, which gives [B, M]; other
        distributions are truly mixed, which gives [B, A · M]. An action of probability 0 drops out,
        whatever its shift is.
        """
        weights = policy.unsqueeze(-1)
        atoms = self.atoms if shift is None else self.atoms + shift.unsqueeze(-1)
        atoms = torch.where(weights == 0, 0.0, atoms)
        if self.comonotone:
            probs = None if self.probs is None else self.probs.expand_as(self.atoms)[..., 0, :]
            return ReturnDistribution((weights * atoms).sum(dim=-2), probs)
        probs = weights * self.probabilities()
        return ReturnDistribution(atoms.flatten(-2), probs.flatten(-2))

    def sorted(self) -> tuple[Tensor, Tensor]:
        """Return the atoms in rising order [..., M] and their cumulated probabilities, [..., M] or [M].

        Probabilities are cumulated and normalised in float64, so that rounding does not lose a rare
        upper tail, and on the CPU, where every map of τ runs.
        """
        atoms, order = self.atoms.sort(dim=-1)
        if self.probs is None:
            count = atoms.shape[-1]
            return atoms, torch.arange(1, count + 1, dtype=torch.float64) / count
        probs = self.probs.expand_as(self.atoms).gather(-1, order)
        cumulated = probs.cpu().double().cumsum(dim=-1)
        return atoms, cumulated / cumulated[..., -1:]

    def wasserstein(self, other: "ReturnDistribution", p: float = 1.0) -> Tensor:
        """Return W_p = (∫ |F⁻¹ − G⁻¹|ᵖ dτ)^(1/p) exactly, [...], for p from 1 to infinity."""
        if not p >= 1:
            raise ValueError(f"p takes a number of at least 1, not {p}.")
        widths, gaps = self._matched(other)
        if math.isinf(p):
            return torch.where(widths > SAME, gaps.abs(), 0.0).amax(dim=-1)  # not by rounding alone
        return (widths * gaps.abs() ** p).sum(dim=-1) ** (1 / p)

    def cramer(self, other: "ReturnDistribution") -> Tensor:
        """Return the Cramér distance (∫ (F − G)² dx)^½ exactly, [...]."""
        points = torch.cat([self.atoms.double(), other.atoms.double()], dim=-1).sort(dim=-1).values
        apart = self.cdf(points).double() - other.cdf(points).double()
        return (apart[..., :-1].square() * points.diff(dim=-1)).sum(dim=-1).sqrt()

    def _matched(self, other: "ReturnDistribution") -> tuple[Tensor, Tensor]:
        """Return widths of τ intervals on which both quantile functions are constant, and their gap."""
        mine, theirs = self.sorted(), other.sorted()
        shape = torch.broadcast_shapes(self.shape, other.shape)  # type: ignore[no-untyped-call]
        edges = [c.expand(*shape, c.shape[-1]) for _, c in (mine, theirs)]
        steps = torch.cat(edges, dim=-1).sort(dim=-1).values
        widths = steps.diff(dim=-1, prepend=torch.zeros_like(steps[..., :1]))
        middles = (steps - widths / 2).contiguous()
        found = []
        for (atoms, _), cumulated in zip((mine, theirs), edges, strict=True):
            index = torch.searchsorted(cumulated.contiguous(), middles).clamp(max=atoms.shape[-1] - 1)
            found.append(atoms.cpu().double().expand(*shape, -1).gather(-1, index))
        return widths, found[0] - found[1]


def _as_tensor(numbers: Tensor | ArrayLike) -> Tensor:
    """Return plain numbers in float64: torch would round a list to float32, and 0.1 up with it."""
    return numbers if isinstance(numbers, Tensor) else torch.from_numpy(np.array(numbers, np.float64))


def _tolerance(atoms: Tensor) -> float:
    return SAME if atoms.dtype == torch.float64 else 0.0


def select_actions(returns: Tensor, actions: Tensor) -> Tensor:
    """Return the entries of one action per state: [B, A, M] and [B] -> [B, M]."""
    index = actions.view(-1, 1, 1).expand(-1, 1, returns.shape[-1])
    return returns.gather(1, index).squeeze(1)
