"""A trained agent: it acts, and it predicts the return distribution of every action."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quantail import seeds
from quantail.agents.returns import Returns, fractions, head_values
from quantail.config import Config
from quantail.envs import EnvSource
from quantail.envs.adapt import encode
from quantail.errors import QuantailError
from quantail.networks import ReturnNetwork
from quantail.risk import RiskMeasure, TauMap, parse_risk
from quantail.spaces import ActionSpec, ObservationSpec
from quantail.validation import wrong

Array = NDArray[Any]
Risk = str | RiskMeasure | TauMap


def require_agent(value: object) -> None:
    """Raise an error if the value is not an agent."""
    if not isinstance(value, Agent):
        raise wrong("agent", "an Agent, as quantail.load and quantail.train return it", value)


class Agent:
    """A trained agent: it acts, and predicts the return distribution of every action.

    `quantail.train` and `quantail.load` return one. Its answers depend on the observation alone, so the
    same observation always gets the same answer: noisy layers use their mean weights, and quantile
    fractions are the midpoints (k + ½)/K instead of samples.

    An observation is what the environment returns, or [stack, *observation] if the agent was trained on
    stacked observations, as `quantail.make` returns them. A batch of observations has one more axis in
    front, and answers to it have one too.

    Attributes:
        config: The configuration with which the agent was trained.
        risk: The risk measure that it uses where a method is given none.
        env: The environment on which it was trained.
        checkpoint: Number of training steps of its weights.
        network: The torch module.
    """

    def __init__(
        self,
        network: ReturnNetwork,
        config: Config,
        observation: ObservationSpec,
        actions: ActionSpec,
        env: EnvSource,
        risk: RiskMeasure,
        checkpoint: int = 0,
    ) -> None:
        self.network = network
        self.config = config
        self.observation = observation
        self.actions = actions
        self.env = env
        self.risk = risk
        self.checkpoint = checkpoint  # steps of training that the weights have seen
        self._exploration = seeds.generator(config.run.seed, "predict")

    def act(
        self, observation: Any, risk: Risk | Sequence[Risk] | None = None
    ) -> int | NDArray[np.int64]:
        """Return the action with the highest value under a risk measure.

        Args:
            observation: One observation, or a batch of them.
            risk: The risk measure; by default the agent's own. A list gives each entry of a batch its
                own.

        Returns:
            The action as an int, or [batch] for a batch.
        """
        batch, single = self._encode(observation)
        actions = self.greedy(batch, self._measures(risk, len(batch))) + self.actions.start
        return int(actions[0]) if single else actions

    def quantiles(self, observation: Any, taus: Any) -> Array:
        """Return quantiles of the return of every action.

        Args:
            observation: One observation, or a batch of them.
            taus: Quantile fractions τ in [0, 1]: a number or [taus].

        Returns:
            Z_τ(x, a), as [taus, actions], or [batch, taus, actions] for a batch.
        """
        return self.returns(observation).quantile(np.atleast_1d(fractions(taus)))

    def unsorted_quantiles(self, observation: Any, taus: Any) -> Array | None:
        """Return quantiles in the order of their τ, before sorting, to see whether they cross.

        Args:
            observation: One observation, or a batch of them.
            taus: Quantile fractions τ, [taus]. A head with fractions of its own uses those instead.

        Returns:
            [taus, actions], or [batch, taus, actions] for a batch; None for a head whose quantiles
            cannot cross.
        """
        batch, single = self._encode(observation)
        wanted = torch.from_numpy(np.atleast_1d(fractions(taus)).astype(np.float32))
        with self._network() as (network, device):
            features = network.features(batch.to(device))
            found = network.head.unsorted_quantiles(features, wanted.expand(len(batch), -1).to(device))
            if found is None:
                return None
            answer: Array = found.cpu().numpy()
        return answer[0] if single else answer

    def values(self, observation: Any, risk: Risk | None = None) -> Array:
        """Return the value of every action under a risk measure, Q_β(x, a).

        Args:
            observation: One observation, or a batch of them.
            risk: The risk measure; by default the agent's own.

        Returns:
            [actions], or [batch, actions] for a batch.
        """
        batch, single = self._encode(observation)
        values = self._values(batch, self._measures(risk, len(batch)))
        answer: Array = values[0] if single else values
        return answer

    def returns(self, observation: Any) -> Returns:
        """Return the return distribution of every action.

        The torso is evaluated once, however many methods of the result are called.

        Args:
            observation: One observation, or a batch of them.
        """
        batch, single = self._encode(observation)
        with self._network() as (network, device):
            features = network.features(batch.to(device))
        return Returns(network.head, features, self.risk, single)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, None]:
        """Return (action, None), with the signature of Stable-Baselines3.

        Args:
            observation: One observation, or a batch of them.
            state: Ignored.
            episode_start: Ignored.
            deterministic: Whether to act greedily. Otherwise the agent is ε-greedy with the
                `evaluation_epsilon` of its configuration; random actions come from a generator of this
                agent, seeded with the seed of its configuration.
        """
        action = self.act(observation)
        if not deterministic:
            shape = np.shape(action)
            random = self._exploration.random(shape) < self.config.evaluation.evaluation_epsilon
            drawn = self._exploration.integers(self.actions.count, size=shape)
            action = np.where(random, drawn + self.actions.start, action)
        return (action if np.ndim(action) else np.int64(action)), None

    def save(self, folder: str | Path, *, half: bool = False) -> None:
        """Save the weights and the settings in a new folder, which `quantail.load` and `eval` take.

        The folder has what a run has, without all that only training needs, so it cannot be resumed.
        `half` stores the weights with 16 bits instead of 32.
        """
        # Runs know agents; an agent looks there only when it is saved.
        from quantail.runs.saved import save_agent

        save_agent(self, folder, half=half)

    def greedy(self, batch: Tensor, risk: RiskMeasure | Sequence[RiskMeasure]) -> NDArray[np.int64]:
        """Return greedy actions, counted from 0, for encoded observations.

        Args:
            batch: Observations as the network takes them, [batch, *input_shape].
            risk: One risk measure, or one for each entry of the batch.

        Returns:
            [batch], int64.
        """
        best: NDArray[np.int64] = self._values(batch, risk).argmax(axis=1)
        return best

    def _values(self, batch: Tensor, risk: RiskMeasure | Sequence[RiskMeasure]) -> Array:
        """Return Q_β at the midpoints for encoded observations, [batch, actions]."""
        with self._network() as (network, device):
            return head_values(network.head, network.features(batch.to(device)), risk)

    @contextmanager
    def _network(self) -> Iterator[tuple[ReturnNetwork, torch.device]]:
        """Provide the network without noise and without gradients, and its device."""
        self.network.drop_noise()
        with torch.inference_mode():
            yield self.network, next(self.network.parameters()).device

    def _measures(
        self, risk: Risk | Sequence[Risk] | None, batch: int
    ) -> RiskMeasure | Sequence[RiskMeasure]:
        """Return the measure of all entries of a batch, or one for each."""
        if risk is None or isinstance(risk, str | RiskMeasure) or callable(risk):
            return self.risk if risk is None else parse_risk(risk)
        if not isinstance(risk, Sequence):
            raise QuantailError(f"risk takes a text such as 'cvar:0.25' or a map of τ, not {risk!r}.")
        if len(risk) != batch:
            raise QuantailError(f"risk takes one measure, or one for each of {batch} observations.")
        return [parse_risk(one) for one in risk]

    def _encode(self, observation: Any) -> tuple[Tensor, bool]:
        """Return the observation as a batch, and whether it was a single one."""
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
