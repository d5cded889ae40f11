"""The trained agent that a user holds: it acts, and it tells what it expects."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quantail.envs import EnvSource
from quantail.envs.adapt import encode
from quantail.errors import QuantailError
from quantail.learning.targets import greedy
from quantail.networks import QuantileNetwork
from quantail.observations import ActionSpec, ObservationSpec
from quantail.risk import RiskMeasure, TauMap, midpoints, parse_risk
from quantail.settings import Settings

Array = NDArray[Any]
Risk = str | RiskMeasure | TauMap


class Agent:
    """A network with what is needed to use it.

    Answers are a function of the observation alone: the K levels are the midpoints (k + ½)/K,
    through the distortion. An observation is what the environment gives, or [stack, *observation]
    where the agent was trained on a stack (`quantail.make` gives those); a batch has one axis more.
    """

    def __init__(
        self,
        network: QuantileNetwork,
        settings: Settings,
        observation: ObservationSpec,
        actions: ActionSpec,
        env: EnvSource,
        risk: RiskMeasure,
        checkpoint: int = 0,
    ) -> None:
        self.network = network
        self.settings = settings
        self.observation = observation
        self.actions = actions
        self.env = env
        self.risk = risk
        self.checkpoint = checkpoint  # steps of training that the weights have seen, where loaded

    def act(
        self, observation: Any, risk: Risk | Sequence[Risk] | None = None
    ) -> int | NDArray[np.int64]:
        """The greedy action under a risk measure: a number, or one for each entry of a batch.

        `risk` defaults to the agent's own; a list of them gives each entry of a batch its own.
        """
        batch, single = self._encode(observation)
        best = self.greedy(batch, self._levels(risk, len(batch)))
        actions: NDArray[np.int64] = best + self.actions.start
        return int(actions[0]) if single else actions

    def quantiles(self, observation: Any, taus: Any) -> Array:
        """Z_τ(x, a): [taus, actions], or [batch, taus, actions] for a batch."""
        levels = np.atleast_1d(np.asarray(taus, dtype=np.float32))
        if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
            raise QuantailError("taus takes one or more levels between 0 and 1.")
        batch, single = self._encode(observation)
        returns = self.returns_at(batch, torch.from_numpy(levels).expand(len(batch), -1)).numpy()
        answer: Array = returns[0] if single else returns
        return answer

    def values(self, observation: Any, risk: Risk | None = None) -> Array:
        """Q_β(x, a): [actions], or [batch, actions] for a batch."""
        batch, single = self._encode(observation)
        values = self.returns_at(batch, self._levels(risk, len(batch))).mean(dim=1).numpy()
        answer: Array = values[0] if single else values
        return answer

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, None]:
        """(action, None), as Stable-Baselines3 has it; not deterministic is ε-greedy as evaluated."""
        action = self.act(observation)
        if not deterministic:
            random = np.random.random(np.shape(action)) < self.settings.evaluation_epsilon
            drawn = np.random.randint(self.actions.count, size=np.shape(action))
            action = np.where(random, drawn + self.actions.start, action)
        return (action if np.ndim(action) else np.int64(action)), None

    def greedy(self, batch: Tensor, levels: Tensor) -> NDArray[np.int64]:
        """Greedy actions counted from 0, for encoded observations and levels [batch, K]."""
        best: NDArray[np.int64] = greedy(self.returns_at(batch, levels)).numpy()
        return best

    @torch.inference_mode()
    def returns_at(self, batch: Tensor, levels: Tensor) -> Tensor:
        """Z at these levels for encoded observations: [batch, levels, actions], on the CPU."""
        device = next(self.network.parameters()).device
        returns: Tensor = self.network(batch.to(device), levels.to(device))
        return returns.cpu()

    def _levels(self, risk: Risk | Sequence[Risk] | None, batch: int) -> Tensor:
        """β at the midpoints for each entry of a batch: [batch, K]."""
        fixed = midpoints(self.settings.policy_samples)
        if risk is None or isinstance(risk, str | RiskMeasure) or callable(risk):
            measure = self.risk if risk is None else parse_risk(risk)
            return measure(fixed).expand(batch, -1)
        if not isinstance(risk, Sequence):
            raise QuantailError(f"risk takes a text such as 'cvar:0.25' or a map of τ, not {risk!r}.")
        if len(risk) != batch:
            raise QuantailError(f"risk takes one measure, or one for each of {batch} observations.")
        return torch.stack([parse_risk(one)(fixed) for one in risk])

    def _encode(self, observation: Any) -> tuple[Tensor, bool]:
        """The observation as a batch, and whether it was a single one."""
        spec = self.observation
        shape = spec.input_shape
        array = encode(spec, observation)
        if array.shape == shape:
            return torch.from_numpy(array[None]), True
        if array.ndim == len(shape) + 1 and array.shape[1:] == shape:
            return torch.from_numpy(array), False
        advice = " (quantail.make gives stacked observations)" if spec.stack > 1 else ""
        raise QuantailError(
            f"the agent takes observations of shape {shape}, one or a batch of them, "
            f"not {array.shape}{advice}."
        )
