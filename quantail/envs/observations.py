"""Observations of Gymnasium spaces as arrays that networks and replay take."""

import zlib
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from quantail.errors import QuantailError
from quantail.spaces import Array, Layout, LeafSpec, Observation, ObservationSpec, arrange, content_of

SMALLEST_IMAGE = 8  # sides of a matrix of bytes that is taken for an image


class ObservationError(QuantailError):
    """An observation that is not of its space. The message goes on after "gave" or "was given"."""


def observation_spec(space: gym.Space[Any], stack: int, name: str) -> ObservationSpec:
    """Return how observations of this space are represented; raise an error for unsupported spaces."""
    leaves = {path: _leaf(one, stack, path, name) for path, one in _entries(space, "", name).items()}
    if not leaves:
        raise QuantailError(
            f"{name} has observations without any entry: there is nothing to learn from."
        )
    return ObservationSpec(dict(sorted(leaves.items())))  # in one order, however the space has them


def encode(spec: ObservationSpec, observation: Any) -> Observation:
    """Return a copy of one or many observations in the form in which they are stored."""
    leaves = {
        path: _encode_leaf(leaf, _entry(spec, observation, path), path)
        for path, leaf in spec.leaves.items()
    }
    return arrange(leaves)


def space_of(spec: ObservationSpec) -> gym.Space[Any]:
    """Return the space of encoded observations."""
    boxes: dict[str, gym.Space[Any]] = {path: _box(leaf) for path, leaf in spec.leaves.items()}
    return next(iter(boxes.values())) if len(boxes) == 1 else spaces.Dict(boxes)


def observation_checksum(observation: Observation) -> int:
    """Return a checksum by which an encoded observation can be recognised."""
    return zlib.crc32(content_of(observation))


def _entries(space: gym.Space[Any], path: str, name: str) -> dict[str, gym.Space[Any]]:
    """Return the spaces of arrays within a space, by path."""
    if isinstance(space, spaces.Dict):
        within = dict(space.spaces)
    elif isinstance(space, spaces.Tuple):
        within = {str(number): one for number, one in enumerate(space.spaces)}
    else:
        return {path: space}
    found: dict[str, gym.Space[Any]] = {}
    for key, one in within.items():
        if not isinstance(key, str) or not key or "/" in key:
            raise QuantailError(
                f"{name} has the key {key!r} in a Dict observation: keys must be texts without /."
            )
        found |= _entries(one, f"{path}/{key}" if path else key, name)
    return found


def _leaf(space: gym.Space[Any], stack: int, path: str, name: str) -> LeafSpec:
    if isinstance(space, spaces.Discrete):
        return _one_hot((), np.array([space.n]), np.array([space.start]), stack)
    if isinstance(space, spaces.MultiDiscrete):
        return _one_hot(tuple(space.shape), space.nvec.ravel(), space.start.ravel(), stack)
    if isinstance(space, spaces.MultiBinary):
        return LeafSpec(tuple(space.shape), "bool", "vector", stack)
    if not isinstance(space, spaces.Box):
        where = f" in {path}" if path else ""
        raise QuantailError(
            f"{name} has observations of type {type(space).__name__}{where}; Quantail supports Box, "
            "Discrete, MultiDiscrete, MultiBinary, and Dict and Tuple of them: change it with "
            "gymnasium.wrappers.TransformObservation."
        )
    shape, layout = tuple(space.shape), _layout(space)
    if space.dtype == np.uint8:
        return LeafSpec(shape, "uint8", layout, stack, high=max(int(space.high.max(initial=0)), 1))
    return LeafSpec(shape, "bool" if space.dtype == np.bool_ else "float32", layout, stack)


def _one_hot(numbers: tuple[int, ...], counts: Array, starts: Array, stack: int) -> LeafSpec:
    return LeafSpec(
        (int(counts.sum()),),
        "bool",
        "one-hot",
        stack,
        numbers=numbers,
        counts=tuple(counts.tolist()),
        starts=tuple(starts.tolist()),
    )


def _layout(space: spaces.Box) -> Layout:
    """Return the layout of a box: images are three-dimensional, stacked, or large matrices of bytes."""
    shape = space.shape
    if len(shape) == 2 and space.dtype == np.uint8 and min(shape) >= SMALLEST_IMAGE:
        return "hw"
    if len(shape) == 4 and space.dtype == np.uint8:
        return "nhwc" if _channels_last(shape[1:]) else "nchw"
    if len(shape) == 3:
        return "hwc" if _channels_last(shape) else "chw"
    return "vector"


def _channels_last(shape: tuple[int, ...]) -> bool:
    first, last = shape[0] == shape[1], shape[1] == shape[2]
    return first or (not last and shape[2] <= shape[0])


def _entry(spec: ObservationSpec, observation: Any, path: str) -> Any:
    """Return the array at a path of an observation, which may also be encoded already."""
    is_tree = isinstance(observation, Mapping)
    if not path:
        if is_tree:
            raise ObservationError(
                f"a dict with the entries {', '.join(map(str, observation))} for an observation: "
                "it takes an array"
            )
        return observation
    if is_tree and path in observation:
        return observation[path]
    if len(spec.leaves) == 1 and not isinstance(observation, Mapping | tuple):
        return observation
    found = observation
    for key in path.split("/"):
        try:
            found = found[key] if isinstance(found, Mapping) else found[int(key)]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ObservationError(
                f"an observation without the entry {path!r}: it takes {', '.join(spec.leaves)}"
            ) from error
    return found


def _encode_leaf(leaf: LeafSpec, value: Any, path: str) -> Array:
    where = f" in {path}" if path else ""
    if leaf.layout == "one-hot" and _holds_numbers(leaf, np.asarray(value)):
        return _encode_numbers(leaf, np.asarray(value), where)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            array: Array = np.array(value, dtype=leaf.dtype, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ObservationError(
            f"an observation{where} that is not an array of numbers of shape {leaf.shape}: {error}"
        ) from error
    if leaf.dtype == "float32":
        if not np.isfinite(array).all():
            raise ObservationError(f"an observation{where} that is not finite: {array}")
    elif getattr(value, "dtype", None) != array.dtype and not np.array_equal(array, value):
        most = 1 if leaf.dtype == "bool" else 255
        raise ObservationError(
            f"an observation{where} with values that are not whole numbers from 0 to {most}; "
            f"its observation_space says {leaf.dtype}"
        )
    return array


def _holds_numbers(leaf: LeafSpec, array: Array) -> bool:
    """Return whether an array has numbers, or else the vectors of zeros and ones that stand for them."""
    is_flag = array.dtype.kind == "b" and array.shape == leaf.numbers != leaf.shape
    return array.dtype.kind in "iu" or is_flag


def _encode_numbers(leaf: LeafSpec, numbers: Array, where: str) -> Array:
    """Return the one-hot vectors of numbers, [..., *leaf.numbers] -> [..., *leaf.shape]."""
    axes = numbers.ndim - len(leaf.numbers)
    if axes < 0 or numbers.shape[axes:] != leaf.numbers:
        raise ObservationError(
            f"an observation{where} of shape {numbers.shape}; its observation_space says {leaf.numbers}"
        )
    counts, starts = np.array(leaf.counts), np.array(leaf.starts)
    flat = numbers.astype(np.int64).reshape(*numbers.shape[:axes], len(counts)) - starts
    if ((flat < 0) | (flat >= counts)).any():
        ranges = sorted(set(zip(starts.tolist(), (starts + counts - 1).tolist(), strict=True)))
        wanted = " or ".join(f"from {first} to {last}" for first, last in ranges)
        raise ObservationError(
            f"an observation{where} with values that must be whole numbers {wanted}, not {numbers}"
        )
    vectors: Array = np.zeros((*flat.shape[:-1], *leaf.shape), leaf.dtype)
    np.put_along_axis(vectors, flat + np.cumsum(counts) - counts, True, axis=-1)
    return vectors


def _box(leaf: LeafSpec) -> spaces.Box:
    kind = np.dtype(leaf.dtype)
    if kind == np.uint8:
        return spaces.Box(0, 255, leaf.input_shape, np.uint8)
    if kind == np.bool_:
        return spaces.Box(0, 1, leaf.input_shape, np.bool_)  # type: ignore[arg-type]
    return spaces.Box(-np.inf, np.inf, leaf.input_shape, np.float32)
