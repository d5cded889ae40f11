"""Adapt any Gymnasium environment with discrete actions for an agent."""

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from quantail.distributions import ReturnDistribution
from quantail.envs.actions import MASK, Mask, action_spec, as_mask, find_mask, without_mask
from quantail.envs.family import EnvFamily
from quantail.envs.observations import ObservationError, encode, observation_spec, space_of
from quantail.errors import QuantailError
from quantail.spaces import Array, Observation, content_of, map_leaves

Env = gym.Env[Any, Any]
FLOAT32_MAX = float(np.finfo(np.float32).max)


class Adapter(gym.Wrapper[Any, Any, Any, Any]):
    """Wrapper that gives observations in their stored dtype and stacks the newest `stack` frames.

    An observation is an array, or a dict of arrays by path. Frames before the first one of an episode
    are zeros. Actions are those of the environment, and `info["action_mask"]` says which are allowed,
    also where the environment has the mask in its observation. Values that are not finite raise an
    error, and errors of the environment are reported with its name.

    Attributes:
        action_mask: The actions that are allowed now, [actions], counted from 0; None if the environment
            does not say so.
    """

    action_mask: Mask | None

    def __init__(self, env: Env, stack: int, name: str, family: EnvFamily | None = None) -> None:
        super().__init__(env)
        self.name = name
        self.family = family or EnvFamily()
        self.actions = action_spec(env.action_space, name)
        space = without_mask(env.observation_space)
        self.spec_of_observation = observation_spec(space, stack, name)
        self.observation_space = space_of(self.spec_of_observation)
        self.action_mask = None
        self._steps = 0  # of the episode
        self._reseeded_state = ""
        self._stack = self.spec_of_observation.zeros()  # used if observations are stacked

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        with self._explain_errors("reset"):
            observation, info = self.env.reset(seed=seed, options=options)
        return self._begin(observation, info), info

    def reset_to(self, seed: int, actions: Sequence[int]) -> Observation:
        """Reset with this seed, play these actions of a human player, and return the observation.

        A player of an ALE game acts at every frame, with any of the console's 18 actions. The frame
        stack holds only the last frame.
        """
        with self._explain_errors("reset_to"):
            observation = self.family.human.start(self.env, seed, actions)
        return self._begin(observation, {})

    def _begin(self, observation: Any, info: dict[str, Any]) -> Observation:
        self._steps = 0
        map_leaves(lambda leaf: leaf.fill(0), self._stack)
        self._read_mask(observation, info, over=False)
        return self._push(observation)

    def reseed(self, seed: int) -> None:
        """Reseed the environment in mid-episode."""
        with self._explain_errors("reseed"):
            self.family.reseed(self.env, seed)
        self._reseeded_state = self._generator_states()

    def used_randomness(self) -> bool:
        """Return whether the environment has used its generators since they were reseeded."""
        return self._generator_states() != self._reseeded_state

    def _generator_states(self) -> str:
        with self._explain_errors("generator_states"):
            return str(self.family.generator_states(self.env))

    def ends_return(self, terminated: bool, info: dict[str, Any]) -> bool:
        """Return whether the return ends at a step in learning, as the family says."""
        with self._explain_errors("ends_return"):
            return bool(self.family.ends_return(terminated, info))

    def action_names(self) -> list[str]:
        """Return a name for each action."""
        with self._explain_errors("action_names"):
            names = [str(name) for name in self.family.action_names(self.env)]
        if len(names) != self.actions.count:
            raise QuantailError(
                f"{self.name} has {len(names)} names for {self.actions.count} actions (action_names of "
                f"the environment or of its family {self.family.name})."
            )
        return names

    def legend(self) -> str:
        """Return what the colours of the rendered image mean; "" if that is unknown."""
        with self._explain_errors("legend"):
            return self.family.legend(self.env)

    def exact_returns(
        self, policy: Callable[[Any], int], discount: float
    ) -> dict[bytes, Sequence[ReturnDistribution]]:
        """Return the exact return distributions of every action, by the bytes of the observation.

        Empty where the family does not know them, and for stacked observations.
        """
        spec = self.spec_of_observation
        if spec.stack > 1:
            return {}
        with self._explain_errors("exact_returns"):
            found = self.family.exact_returns(self.env, policy, discount) or {}
        return {content_of(encode(spec, observation)): one for observation, one in found.items()}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        with self._explain_errors("step"):
            taken = np.asarray(action) if self.actions.sizes else int(action)
            observation, reward, terminated, truncated, info = self.env.step(taken)
            reward, terminated, truncated = float(reward), bool(terminated), bool(truncated)
        if not abs(reward) <= FLOAT32_MAX:
            raise QuantailError(
                f"{self.name} gave a reward of {reward} for action {action}: rewards must be finite "
                "float32 numbers."
            )
        self._steps += 1
        self._read_mask(observation, info, over=terminated)
        return self._push(observation), reward, terminated, truncated, info

    def _read_mask(self, observation: Any, info: dict[str, Any], *, over: bool) -> None:
        """Keep the mask that comes with an observation, and put it into `info`."""
        given = find_mask(observation, info)
        self.action_mask = None
        if given is None:
            return
        try:
            self.action_mask = as_mask(given, self.actions)
        except QuantailError as error:
            raise QuantailError(f"{self.name} gave a wrong mask: {error}") from error
        info[MASK] = given
        if not over and not self.action_mask.any():
            raise QuantailError(
                f"{self.name} allows no action after step {self._steps} of the episode: its action mask "
                "is all zeros, and the episode has not terminated."
            )

    @contextmanager
    def _explain_errors(self, what: str) -> Iterator[None]:
        """Add the name of the environment and the line of its code to any error that it raises."""
        try:
            yield
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise QuantailError(
                f"{self.name} failed in {what}: {type(error).__name__}: {error} "
                f"({Path(last.filename).name}, line {last.lineno})."
            ) from error

    def _push(self, observation: Any) -> Observation:
        spec = self.spec_of_observation
        try:
            frame = encode(spec, observation)
        except ObservationError as error:
            raise QuantailError(f"{self.name} gave {error}.") from error
        for path, found in spec.by_path(frame).items():
            leaf = spec.leaves[path]
            if found.shape != leaf.shape:
                where = f" in {path}" if path else ""
                raise QuantailError(
                    f"{self.name} gave an observation{where} of shape {found.shape}; "
                    f"its observation_space says {leaf.shape}."
                )
        if spec.stack == 1:
            return frame
        map_leaves(_append, self._stack, frame)
        return map_leaves(lambda stack: stack.copy(), self._stack)


def _append(stack: Array, frame: Array) -> None:
    """Add the newest frame to a stack, and remove the oldest one."""
    stack[:-1] = stack[1:]
    stack[-1] = frame
