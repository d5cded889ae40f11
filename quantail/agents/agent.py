"""A trained agent: it acts, and it predicts the return distribution of every action."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quantail import seeds
from quantail.agents.exploration import random_actions
from quantail.agents.returns import Returns, fractions, head_values
from quantail.config import Config
from quantail.envs import EnvSource
from quantail.envs.actions import Mask, as_mask, find_mask
from quantail.envs.observations import ObservationError, encode
from quantail.envs.source import name_of
from quantail.errors import QuantailError
from quantail.networks import ReturnNetwork
from quantail.risk import RiskMeasure, TauMap, parse_risk
from quantail.spaces import (
    ActionSpec,
    Observation,
    ObservationSpec,
    length,
    map_leaves,
    to_device,
    to_tensors,
)
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

    An observation is what the environment returns: an array, or a dict of arrays. If the agent was
    trained on stacked observations, it is [stack, *observation], as `quantail.make` returns them. A
    batch of observations has one more axis in front of every array, and answers to it have one too.

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

    def __repr__(self) -> str:
        about = f"{self.config.run.agent} on {name_of(self.env)} after {self.checkpoint:,} steps"
        return f"Agent({about}, risk {self.risk})"

    def act(
        self,
        observation: Any,
        risk: Risk | Sequence[Risk] | None = None,
        *,
        mask: Any = None,
    ) -> int | NDArray[np.int64]:
        """Return the action with the highest value under a risk measure, among those that are allowed.

        Args:
            observation: One observation, or a batch of them.
            risk: The risk measure; by default the agent's own. A list gives each entry of a batch its
                own.
            mask: The actions that are allowed, [actions] of 0 and 1, such as `info["action_mask"]`, or
                [batch, actions]; by default the entry "action_mask" of a dict observation, or all.

        Returns:
            The action as an int, or [batch] for a batch; an array for each if the environment takes
            several numbers at once.
        """
        batch, single = self._encode(observation)
        count = length(batch)
        masks = self._masks(observation, mask, count, single)
        chosen = self.greedy(batch, self._measures(risk, count), masks)
        actions: NDArray[np.int64] = self.actions.to_env(chosen)
        if not single:
            return actions
        one: NDArray[np.int64] = actions[0]
        return one if self.actions.sizes else int(one)

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
            features = network.features(to_device(batch, device))
            wanted = wanted.expand(len(features), -1).to(device)
            found = network.head.unsorted_quantiles(features, wanted)
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
        values: Array = self._values(batch, self._measures(risk, length(batch)))
        return values[0] if single else values

    def returns(self, observation: Any) -> Returns:
        """Return the return distribution of every action.

        The torso is evaluated once, however many methods of the result are called.

        Args:
            observation: One observation, or a batch of them.
        """
        batch, single = self._encode(observation)
        with self._network() as (network, device):
            features = network.features(to_device(batch, device))
        return Returns(network.head, features, self.risk, single)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        *,
        action_masks: Any = None,
    ) -> tuple[Any, None]:
        """Return (action, None), with the signature of Stable-Baselines3.

        Args:
            observation: One observation, or a batch of them.
            state: Ignored.
            episode_start: Ignored.
            deterministic: Whether to act greedily. Otherwise the agent is ε-greedy with the
                `evaluation_epsilon` of its configuration; random actions come from a generator of this
                agent, seeded with the seed of its configuration.
            action_masks: The actions that are allowed, as `mask` of `act`: not the concatenated form
                that sb3-contrib has for several numbers.
        """
        batch, single = self._encode(observation)
        count = length(batch)
        masks = self._masks(observation, action_masks, count, single)
        chosen = self.greedy(batch, self.risk, masks)
        if not deterministic:
            random = self._exploration.random(count) < self.config.evaluation.evaluation_epsilon
            drawn = random_actions(self._exploration.random(count), masks, self.actions.count)
            chosen = np.where(random, drawn, chosen)
        actions = self.actions.to_env(chosen)
        return (actions[0] if single else actions), None

    def save(self, folder: str | Path, *, half: bool = False) -> None:
        """Save the weights and the settings in a new folder, which `quantail.load` and `eval` take.

        The folder has what a run has, without all that only training needs, so it cannot be resumed.
        `half` stores the weights with 16 bits instead of 32.
        """
        # Runs know agents; an agent looks there only when it is saved.
        from quantail.runs.saved import save_agent

        save_agent(self, folder, half=half)

    def greedy(
        self,
        batch: Observation,
        risk: RiskMeasure | Sequence[RiskMeasure],
        masks: Mask | None = None,
    ) -> NDArray[np.int64]:
        """Return greedy actions, counted from 0, for encoded observations.

        Args:
            batch: Observations as the network takes them, tensors [batch, *input_shape].
            risk: One risk measure, or one for each entry of the batch.
            masks: The actions that are allowed, [batch, actions]; None if all are.

        Returns:
            [batch], int64.
        """
        values = self._values(batch, risk)
        if masks is not None:
            values = np.where(masks, values, -np.inf)
        best: NDArray[np.int64] = values.argmax(axis=1)
        return best

    def _values(self, batch: Observation, risk: RiskMeasure | Sequence[RiskMeasure]) -> Array:
        """Return Q_β at the midpoints for encoded observations, [batch, actions]."""
        with self._network() as (network, device):
            return head_values(network.head, network.features(to_device(batch, device)), risk)

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

    def _masks(self, observation: Any, given: Any, count: int, single: bool) -> Mask | None:
        """Return the masks of a batch, [batch, actions]: those given, or those in the observation."""
        given = find_mask(observation, {}) if given is None else given
        if given is None:
            return None
        rows = [given] if single else list(given)
        if len(rows) != count:
            raise QuantailError(f"mask takes one for each of {count} observations, not {len(rows)}.")
        masks = np.stack([as_mask(row, self.actions) for row in rows])
        if not masks.any(axis=1).all():
            raise QuantailError("mask allows no action: it takes a 1 for at least one of them.")
        return masks

    def _encode(self, observation: Any) -> tuple[Observation, bool]:
        """Return the observation as a batch of tensors, and whether it was a single one."""
        spec = self.observation
        try:
            encoded = encode(spec, observation)
        except ObservationError as error:
            raise QuantailError(f"the agent was given {error}.") from error
        axes = set()
        for path, array in spec.by_path(encoded).items():
            leaf, shape = spec.leaves[path], array.shape
            axes.add(len(shape) - len(leaf.input_shape))
            if shape[len(shape) - len(leaf.input_shape) :] != leaf.input_shape or not axes <= {0, 1}:
                where = f" in {path}" if path else ""
                advice = " (quantail.make gives stacked observations)" if spec.stack > 1 else ""
                raise QuantailError(
                    f"the agent takes observations of shape {leaf.input_shape}{where}, one or a batch "
                    f"of them, not {shape}{advice}."
                )
        if len(axes) > 1:
            raise QuantailError("the agent takes one observation or a batch, not some entries of each.")
        single = axes == {0}
        return to_tensors(map_leaves(lambda leaf: leaf[None], encoded) if single else encoded), single
