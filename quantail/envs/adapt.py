"""Adapt any Gymnasium environment with discrete actions for an agent."""

import traceback
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from quantail.distributions import ReturnDistribution
from quantail.envs.family import EnvFamily
from quantail.errors import QuantailError
from quantail.spaces import ActionSpec, Layout, ObservationSpec

Array = NDArray[Any]
Env = gym.Env[Any, Any]
FLOAT32_MAX = float(np.finfo(np.float32).max)


def observation_spec(space: gym.Space[Any], stack: int, name: str) -> ObservationSpec:
    """Return how observations of this space are represented; raise an error for unsupported spaces."""
    if isinstance(space, spaces.Discrete):
        return ObservationSpec((int(space.n),), "float32", "one-hot", stack, int(space.start))
    if isinstance(space, spaces.MultiBinary):
        return ObservationSpec(tuple(space.shape), "bool", "vector", stack)
    if not isinstance(space, spaces.Box):
        raise QuantailError(
            f"{name} has observations of type {type(space).__name__}; Quantail supports vectors, "
            "images and Discrete: wrap it in gymnasium.wrappers.FlattenObservation."
        )
    shape, layout = tuple(space.shape), _layout(space)
    if layout == "vector" and len(shape) != 1:
        raise QuantailError(
            f"{name} has observations of shape {shape}; Quantail supports vectors and images: "
            "wrap it in gymnasium.wrappers.FlattenObservation."
        )
    if space.dtype == np.uint8:
        return ObservationSpec(shape, "uint8", layout, stack, high=max(int(space.high.max()), 1))
    return ObservationSpec(shape, "bool" if space.dtype == np.bool_ else "float32", layout, stack)


def _layout(space: spaces.Box) -> Layout:
    shape = space.shape
    if len(shape) == 2 and space.dtype == np.uint8 and min(shape) >= 8:
        return "hw"
    if len(shape) == 3:
        square = shape[0] == shape[1], shape[1] == shape[2]
        channels_last = square[0] or (not square[1] and shape[2] <= shape[0])
        return "hwc" if channels_last else "chw"
    return "vector"


def action_spec(space: gym.Space[Any], name: str) -> ActionSpec:
    """Return the actions of this space; raise an error if they are not discrete."""
    if not isinstance(space, spaces.Discrete):
        raise QuantailError(
            f"{name} has {type(space).__name__} actions; Quantail supports only Discrete ones: "
            "discretise the actions first."
        )
    return ActionSpec(int(space.n), int(space.start))


def observation_checksum(observation: Any) -> int:
    """Return a checksum by which an observation can be recognised."""
    return zlib.crc32(np.ascontiguousarray(observation).tobytes())


def encode(spec: ObservationSpec, observations: Any) -> Array:
    """Return a copy of one or many observations in the form in which they are stored."""
    if spec.layout != "one-hot":
        return np.array(observations, dtype=spec.dtype, order="C")
    numbers = np.asarray(observations)
    if numbers.dtype.kind not in "iu":  # one-hot already
        return np.array(observations, dtype=spec.dtype, order="C")
    first, last = spec.start, spec.start + spec.shape[0] - 1
    if numbers.size and not (first <= numbers.min() and numbers.max() <= last):
        raise QuantailError(f"observations must be whole numbers from {first} to {last}, not {numbers}.")
    vectors: Array = np.eye(spec.shape[0], dtype=spec.dtype)[numbers - spec.start]
    return vectors


class Adapter(gym.Wrapper[Any, Any, Any, Any]):
    """Wrapper that gives observations in their stored dtype and stacks the newest `stack` frames.

    Frames before the first one of an episode are zeros. Actions are those of the environment. Values
    that are not finite raise an error, and errors of the environment are reported with its name.
    """

    def __init__(self, env: Env, stack: int, name: str, family: EnvFamily | None = None) -> None:
        super().__init__(env)
        self.name = name
        self.family = family or EnvFamily()
        self.actions = action_spec(env.action_space, name)
        self.spec_of_observation = observation_spec(env.observation_space, stack, name)
        self.observation_space = _space(self.spec_of_observation)
        self._reseeded_state = ""
        self._stack = np.zeros((stack, *self.spec_of_observation.shape), self.observation_space.dtype)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        with self._explain_errors("reset"):
            observation, info = self.env.reset(seed=seed, options=options)
        self._stack[:] = 0
        return self._push(observation), info

    def reset_to(self, seed: int, actions: Sequence[int]) -> Array:
        """Reset with this seed, play these actions of a human player, and return the observation.

        A player of an ALE game acts at every frame, with any of the console's 18 actions. The frame
        stack holds only the last frame.
        """
        with self._explain_errors("reset_to"):
            observation = self.family.human.start(self.env, seed, actions)
        self._stack[:] = 0
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
                f"the environment family {self.family.name} has {len(names)} names for the "
                f"{self.actions.count} actions of {self.name}."
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
        return {encode(spec, observation).tobytes(): one for observation, one in found.items()}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        with self._explain_errors("step"):
            observation, reward, terminated, truncated, info = self.env.step(int(action))
            reward = float(reward)
        if not abs(reward) <= FLOAT32_MAX:
            raise QuantailError(
                f"{self.name} gave a reward of {reward} for action {action}: rewards must be finite "
                "float32 numbers."
            )
        return self._push(observation), reward, bool(terminated), bool(truncated), info

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

    def _push(self, observation: Any) -> Array:
        spec = self.spec_of_observation
        frame = encode(spec, observation)
        if frame.shape != spec.shape:
            raise QuantailError(
                f"{self.name} gave an observation of shape {frame.shape}; "
                f"its observation_space says {spec.shape}."
            )
        if spec.dtype == "float32" and not np.isfinite(frame).all():
            raise QuantailError(f"{self.name} gave an observation that is not finite: {frame}.")
        fits = spec.dtype != "uint8" or getattr(observation, "dtype", None) == np.uint8
        if not fits and not np.array_equal(frame, observation):
            raise QuantailError(
                f"{self.name} gave an observation with values that are not whole numbers from 0 to 255; "
                "its observation_space says uint8."
            )
        if spec.stack == 1:
            return frame
        self._stack[:-1] = self._stack[1:]
        self._stack[-1] = frame
        return self._stack.copy()


def newest_frame(spec: ObservationSpec, observation: Array) -> Array:
    """Return the newest frame of an observation: the observation itself, or the last of its stack."""
    frame: Array = observation if spec.stack == 1 else observation[-1]
    return frame


def _space(spec: ObservationSpec) -> spaces.Box:
    kind = np.dtype(spec.dtype)
    if kind == np.uint8:
        return spaces.Box(0, 255, spec.input_shape, np.uint8)
    if kind == np.bool_:
        return spaces.Box(0, 1, spec.input_shape, np.bool_)  # type: ignore[arg-type]
    return spaces.Box(-np.inf, np.inf, spec.input_shape, np.float32)
