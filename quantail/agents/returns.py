"""The predicted return distribution of a trained agent: quantiles, probabilities, samples, values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError
from quantail.networks import ReturnHead
from quantail.risk import RiskMeasure, TauMap, parse_risk
from quantail.taus import midpoint_taus, midpoints
from quantail.validation import whole_number

Array = NDArray[Any]
ATOMS = 512  # equally likely returns that stand for a distribution


class Returns:
    """The distribution of the discounted return of every action: `agent.returns(observation)`.

        returns = agent.returns(observation)
        returns.quantile([0.1, 0.5, 0.9])   # [3, actions]
        returns.value("cvar:0.1")           # [actions]

    Arrays end with an axis of actions, and begin with one of observations if there is a batch of them.
    `quantile` evaluates the network at any τ. `cdf`, `std` and `sample` use 512 equally likely returns,
    the quantiles at as many midpoints. `value` and `mean` are what the agent acts on.
    """

    def __init__(self, head: ReturnHead, features: Tensor, risk: RiskMeasure, single: bool) -> None:
        self._head, self._features, self._risk, self._single = head, features, risk, single
        self._found: ReturnDistribution | None = None

    def __repr__(self) -> str:
        means, spreads = np.atleast_2d(self.mean()), np.atleast_2d(self.std())
        if not self._single:
            return f"Returns({len(means)} observations, {means.shape[1]} actions)"
        each = [f"{mean:.4g} ± {std:.3g}" for mean, std in zip(means[0], spreads[0], strict=True)]
        return f"Returns({', '.join(each)}: mean ± standard deviation of each action)"

    def quantile(self, taus: Any) -> Array:
        """Return the quantiles Z_τ of every action.

        Args:
            taus: Quantile fractions τ in [0, 1]: a number or [taus].

        Returns:
            [taus, actions]; [actions] for one number.
        """
        wanted = fractions(taus)
        found = self._unbatched(self._quantiles(np.atleast_1d(wanted)))
        return found if wanted.ndim else found[..., 0, :]

    def cdf(self, returns: Any) -> Array:
        """Return the probability P(Z ≤ z) of every action.

        Args:
            returns: Returns z: a number or [returns].

        Returns:
            [returns, actions]; [actions] for one number.
        """
        points = numbers(returns, "returns takes one or more finite numbers")
        found = self._distribution().cdf(np.atleast_1d(points)).transpose(1, 2).numpy()
        found = self._unbatched(found)
        return found if points.ndim else found[..., 0, :]

    def sample(self, count: int, seed: int | None = None) -> Array:
        """Sample returns of every action; actions are sampled independently.

        Args:
            count: Number of samples of each action.
            seed: Seed of the generator; None draws a new one.

        Returns:
            [count, actions].
        """
        count = whole_number("count", count, 1)
        seed = None if seed is None else whole_number("seed", seed, 0)
        atoms = self._distribution().atoms.numpy().transpose(0, 2, 1)  # [batch, atoms, actions]
        batch, size, actions = atoms.shape
        drawn = np.random.default_rng(seed).integers(size, size=(batch, count, actions))
        return self._unbatched(np.take_along_axis(atoms, drawn, axis=1))

    def mean(self) -> Array:
        """Return the mean of each action's return, as the agent acts on it: [actions]."""
        return self.value("neutral")

    def crossing(self, taus: Any) -> float | None:
        """Return the share of neighbouring quantiles, over all actions, that fall as τ rises.

        None for a head whose quantiles cannot cross. Heads with fractions of their own use those.
        """
        wanted = torch.from_numpy(np.atleast_1d(fractions(taus)).astype(np.float32))
        wanted = wanted.expand(len(self._features), -1).to(self._features.device)
        with torch.inference_mode():
            found = self._head.unsorted_quantiles(self._features, wanted)
        return None if found is None else float((found.diff(dim=1) < 0).double().mean())

    def std(self) -> Array:
        """Return the standard deviation of each action's return: [actions]."""
        return self._unbatched(self._distribution().std().numpy())

    def value(self, risk: str | RiskMeasure | TauMap | None = None) -> Array:
        """Return the value of each action under a risk measure, [actions].

        Args:
            risk: The risk measure; by default the agent's own.
        """
        measure = self._risk if risk is None else parse_risk(risk)
        return self._unbatched(head_values(self._head, self._features, measure))

    @torch.inference_mode()
    def _quantiles(self, taus: Array) -> Array:
        """Return [batch, taus, actions]."""
        wanted = torch.from_numpy(taus.astype(np.float32)).to(self._features.device)
        returns = self._head.quantiles(self._features, wanted.expand(len(self._features), -1))
        found: Array = returns.cpu().numpy()
        return found

    def _distribution(self) -> ReturnDistribution:
        """Return ATOMS equally likely returns of each action, [batch, actions, ATOMS], in float64."""
        if self._found is None:
            atoms = self._quantiles(midpoints(ATOMS).numpy()).astype(np.float64)
            self._found = ReturnDistribution(torch.from_numpy(atoms).transpose(1, 2).contiguous())
        return self._found

    def _unbatched(self, batch: Array) -> Array:
        """Return the array of a single observation without its batch axis."""
        found: Array = batch[0] if self._single else batch
        return found


@torch.inference_mode()
def head_values(head: ReturnHead, features: Tensor, risk: RiskMeasure | Sequence[RiskMeasure]) -> Array:
    """Return Q_β at the midpoints, [batch, actions], under one measure or one for each entry."""
    if isinstance(risk, RiskMeasure):
        answer: Array = head.value(features, risk, midpoint_taus).cpu().numpy()
        return answer
    rows_of: dict[RiskMeasure, list[int]] = {}
    for row, measure in enumerate(risk):
        rows_of.setdefault(measure, []).append(row)
    found = {m: head.value(features[rows], m, midpoint_taus) for m, rows in rows_of.items()}
    answer = np.zeros((len(features), next(iter(found.values())).shape[1]), np.float32)
    for measure, rows in rows_of.items():
        answer[rows] = found[measure].cpu().numpy()
    return answer


def fractions(taus: Any) -> Array:
    """Return quantile fractions, one or a row of them, after checking that they lie in [0, 1]."""
    sentence = "taus takes one or more numbers between 0 and 1"
    found = numbers(taus, sentence)
    if not ((found >= 0) & (found <= 1)).all():
        raise QuantailError(f"{sentence}, not {taus!r}.")
    return found


def numbers(value: Any, sentence: str) -> Array:
    """Return one finite number, or a row of them."""
    try:
        found = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise QuantailError(f"{sentence}, not {value!r}.") from error
    if found.ndim > 1 or not found.size or not np.isfinite(found).all():
        raise QuantailError(f"{sentence}, not {value!r}.")
    return found
