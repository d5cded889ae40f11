"""The law of the return, as a user asks for it: quantiles, chances, samples, values."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from quantail.errors import QuantailError
from quantail.risk import midpoints

if TYPE_CHECKING:
    from quantail.acting.agent import Agent, Risk

Array = NDArray[Any]
ATOMS = 512  # equally likely returns that stand for a law


class Returns:
    """What the agent expects of every action: the law of its discounted return.

    Answers end with an axis of actions, and begin with one of observations where a batch was asked for.
    `quantile` is the network's own word at any τ. `cdf`, `std` and `sample` take the law as 512 equally
    likely returns, the quantiles at their midpoints in rising order. `value` and `mean` are what the
    agent acts on.
    """

    def __init__(self, agent: "Agent", batch: Tensor, single: bool) -> None:
        self._agent, self._batch, self._single = agent, batch, single
        self._law: Array | None = None

    def quantile(self, taus: Any) -> Array:
        """Z_τ of every action: [τ, actions]; for one τ, [actions]."""
        levels = np.asarray(taus, np.float32)
        found = self._answer(self._agent.quantiles(self._batch.numpy(), levels))
        return found if levels.ndim else found[..., 0, :]

    def cdf(self, returns: Any) -> Array:
        """The chance of at most so much: [returns, actions]; for one number, [actions]."""
        asked = np.asarray(returns, np.float64)
        if asked.ndim > 1 or not np.isfinite(asked).all():
            raise QuantailError("returns takes one or more finite numbers.")
        atoms = self._atoms()[:, None]  # [batch, 1, atoms, actions]
        below = (atoms <= np.atleast_1d(asked)[:, None, None]).mean(axis=2)
        found = self._answer(below)
        return found if asked.ndim else found[..., 0, :]

    def sample(self, count: int, seed: int | None = None) -> Array:
        """Returns drawn from the law: [count, actions]. Actions are drawn independently."""
        if count < 1:
            raise QuantailError(f"count takes a whole number of at least 1, not {count}.")
        atoms = self._atoms()
        batch, size, actions = atoms.shape
        drawn = np.random.default_rng(seed).integers(size, size=(batch, count, actions))
        return self._answer(np.take_along_axis(atoms, drawn, axis=1))

    def mean(self) -> Array:
        """Of each action's return, as the agent acts on it: [actions]."""
        return self.value("neutral")

    def std(self) -> Array:
        """The standard deviation of each action's return: [actions]."""
        return self._answer(self._atoms().std(axis=1))

    def value(self, risk: "Risk | None" = None) -> Array:
        """Q_β of each action under a risk measure, the agent's own unless told: [actions]."""
        return self._answer(self._agent.values(self._batch.numpy(), risk))

    def _atoms(self) -> Array:
        """[batch, atoms, actions], rising."""
        if self._law is None:
            taus = midpoints(ATOMS).numpy()
            quantiles = self._agent.quantiles(self._batch.numpy(), taus)
            self._law = np.sort(quantiles.astype(np.float64), axis=1)
        return self._law

    def _answer(self, batch: Array) -> Array:
        answer: Array = batch[0] if self._single else batch
        return answer
