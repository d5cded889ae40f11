"""The distribution of the return, as a user asks for it: quantiles, probabilities, samples, values."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from quantail.errors import QuantailError
from quantail.risk import midpoints

if TYPE_CHECKING:
    from quantail.agents.agent import Agent, Risk

Array = NDArray[Any]
ATOMS = 512  # equally likely returns that stand for a distribution


class Returns:
    """What the agent expects of every action: the distribution of its discounted return.

    Answers end with an axis of actions, and begin with one of observations where a batch was asked for.
    `quantile` asks the network at any τ. `cdf`, `std` and `sample` take the distribution as 512 equally
    likely returns, the quantiles at as many midpoints. `value` and `mean` are what the
    agent acts on.
    """

    def __init__(self, agent: "Agent", batch: Tensor, single: bool) -> None:
        self._agent, self._batch, self._single = agent, batch, single
        self._distribution: Array | None = None

    def quantile(self, taus: Any) -> Array:
        """Z_τ of every action: [τ, actions]; for one τ, [actions]."""
        found = self._answer(self._agent.quantiles(self._batch.numpy(), taus))
        return found if np.ndim(taus) else found[..., 0, :]

    def cdf(self, returns: Any) -> Array:
        """The probability of at most so much: [returns, actions]; for one number, [actions]."""
        asked = numbers(returns, "returns takes one or more finite numbers")
        atoms = self._atoms()[:, None]  # [batch, 1, atoms, actions]
        below = (atoms <= np.atleast_1d(asked)[:, None, None]).mean(axis=2)
        found = self._answer(below)
        return found if asked.ndim else found[..., 0, :]

    def sample(self, count: int, seed: int | None = None) -> Array:
        """Returns drawn from the distribution: [count, actions]. Actions are drawn independently."""
        _check_whole("count", count, 1)
        if seed is not None:
            _check_whole("seed", seed, 0)
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
        """[batch, atoms, actions], each as likely as another."""
        if self._distribution is None:
            taus = midpoints(ATOMS).numpy()
            self._distribution = self._agent.quantiles(self._batch.numpy(), taus).astype(np.float64)
        return self._distribution

    def _answer(self, batch: Array) -> Array:
        answer: Array = batch[0] if self._single else batch
        return answer


def numbers(asked: Any, sentence: str) -> Array:
    """One finite number, or a row of them."""
    try:
        found = np.asarray(asked, np.float64)
    except (TypeError, ValueError) as error:
        raise QuantailError(f"{sentence}, not {asked!r}.") from error
    if found.ndim > 1 or not found.size or not np.isfinite(found).all():
        raise QuantailError(f"{sentence}, not {asked!r}.")
    return found


def _check_whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise QuantailError(f"{name} takes a whole number of at least {least}, not {value!r}.")
