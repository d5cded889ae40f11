"""Any Gymnasium environment with discrete actions, made ready for an agent."""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from quantail.envs.atari import AtariGame
from quantail.envs.minatar import game_of
from quantail.errors import QuantailError
from quantail.observations import ActionSpec, Layout, ObservationSpec

Array = NDArray[Any]
Env = gym.Env[Any, Any]
FLOAT32_MAX = float(np.finfo(np.float32).max)


def observation_spec(space: gym.Space[Any], stack: int, name: str) -> ObservationSpec:
    """How observations of this space are stored and shown to a network, or why they cannot be."""
    if isinstance(space, spaces.Discrete):
        return ObservationSpec((int(space.n),), "float32", "one-hot", stack, int(space.start))
    if isinstance(space, spaces.MultiBinary):
        return ObservationSpec(tuple(space.shape), "bool", "vector", stack)
    if not isinstance(space, spaces.Box):
        raise QuantailError(
            f"{name} has observations of type {type(space).__name__}; Quantail takes vectors, "
            "images and Discrete ones: wrap it in gymnasium.wrappers.FlattenObservation."
        )
    shape, layout = tuple(space.shape), _layout(space)
    if layout == "vector" and len(shape) != 1:
        raise QuantailError(
            f"{name} has observations of shape {shape}; Quantail takes vectors and images: "
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
    """The actions of this space, or why they cannot be used."""
    if not isinstance(space, spaces.Discrete):
        raise QuantailError(
            f"{name} has {type(space).__name__} actions; Quantail's agents choose among "
            "Discrete ones: discretise the actions first."
        )
    return ActionSpec(int(space.n), int(space.start))


def encode(spec: ObservationSpec, observations: Any) -> Array:
    """Observations of the environment, one or many, as they are stored; always a copy."""
    if spec.layout != "one-hot":
        return np.array(observations, dtype=spec.dtype, order="C")
    numbers = np.asarray(observations)
    if numbers.dtype.kind not in "iu":  # one-hot already
        return np.array(observations, dtype=spec.dtype, order="C")
    first, last = spec.start, spec.start + spec.shape[0] - 1
    if numbers.size and not (first <= numbers.min() and numbers.max() <= last):
        raise QuantailError(f"observations are whole numbers from {first} to {last}, not {numbers}.")
    vectors: Array = np.eye(spec.shape[0], dtype=spec.dtype)[numbers - spec.start]
    return vectors


class Adapter(gym.Wrapper[Any, Any, Any, Any]):
    """Frames in their stored dtype, the newest `stack` of them together; actions are the environment's.

    Observations before an episode's first one are zeros. Anything that is not finite is refused, and
    whatever the environment raises is told in one sentence.
    """

    def __init__(self, env: Env, stack: int, name: str) -> None:
        super().__init__(env)
        self.name = name
        self.actions = action_spec(env.action_space, name)
        self.spec_of_observation = observation_spec(env.observation_space, stack, name)
        self.observation_space = _space(self.spec_of_observation)
        self._luck = ""
        self._stack = np.zeros((stack, *self.spec_of_observation.shape), self.observation_space.dtype)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        with self._blamed("reset"):
            observation, info = self.env.reset(seed=seed, options=options)
        self._stack[:] = 0
        return self._push(observation), info

    def reset_to(self, seed: int, actions: Sequence[int]) -> Array:
        """Begin where these actions of a player lead from this seed; what is seen there.

        A player of an ALE game acts at every frame, with any of the console's 18 actions. What a player
        saw before is not in the stack.
        """
        if isinstance(self.unwrapped, AtariGame):
            return self.reset(seed=seed, options={"actions": actions})[0]
        with self._blamed("step"):
            observation, _ = self.env.reset(seed=seed)
            for action in actions:
                observation, *_ = self.env.step(int(action))
        self._stack[:] = 0
        return self._push(observation)

    def reseed(self, seed: int) -> None:
        """Other luck from here on, where chance is drawn by Gymnasium's generator or MinAtar's."""
        with self._blamed("reseed"):
            self.unwrapped.np_random = np.random.default_rng(seed)
            if game := game_of(self.unwrapped):
                game.seed(seed)
        self._luck = self._generators()

    def chance_drawn(self) -> bool:
        """Whether anything was drawn from those generators since they were reseeded."""
        return self._generators() != self._luck

    def _generators(self) -> str:
        """Their states."""
        states = [self.unwrapped.np_random.bit_generator.state]
        if game := game_of(self.unwrapped):
            key = game.random.get_state()
            states.append({"key": key[1].tobytes(), "place": key[2:]})
        return str(states)

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        with self._blamed("step"):
            observation, reward, terminated, truncated, info = self.env.step(int(action))
            reward = float(reward)
        if not abs(reward) <= FLOAT32_MAX:
            raise QuantailError(
                f"{self.name} gave a reward of {reward} for action {action}: it takes a finite float32."
            )
        return self._push(observation), reward, bool(terminated), bool(truncated), info

    @contextmanager
    def _blamed(self, what: str) -> Iterator[None]:
        """Name the environment, and the line of its code, in whatever it raises."""
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
    """The one frame of an adapted observation that its predecessor did not have."""
    frame: Array = observation if spec.stack == 1 else observation[-1]
    return frame


def _space(spec: ObservationSpec) -> spaces.Box:
    kind = np.dtype(spec.dtype)
    if kind == np.uint8:
        return spaces.Box(0, 255, spec.input_shape, np.uint8)
    if kind == np.bool_:
        return spaces.Box(0, 1, spec.input_shape, np.bool_)  # type: ignore[arg-type]
    return spaces.Box(-np.inf, np.inf, spec.input_shape, np.float32)
