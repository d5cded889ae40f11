"""What observations and actions look like, for environments, networks, replay and files.

Everywhere inside Quantail an observation is an array, or a dict of arrays by path where the environment
gives several. `map_leaves` treats both alike, so that no code needs to ask which it is.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from quantail.errors import QuantailError

Array = NDArray[Any]
Observation = Any  # an array, or a dict of arrays by path; of NumPy, or of torch in networks
Layout = Literal["vector", "one-hot", "hw", "hwc", "chw", "nhwc", "nchw"]


@dataclass(frozen=True)
class LeafSpec:
    """The shape, dtype and layout of one array of an observation, and the number of stacked frames.

    The array is a single frame if `stack` is 1, and [stack, *frame] otherwise. An environment gives a
    `one-hot` frame as integers of the shape `numbers`: each counts from its entry of `starts` and takes
    `counts` values, and all are stored together as one vector of zeros and ones. Frames of dtype uint8
    have values up to `high`, and the network divides them by it.
    """

    shape: tuple[int, ...]
    dtype: str
    layout: Layout
    stack: int = 1
    high: int = 255
    numbers: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The input shape of a network, without the batch axis."""
        return self.shape if self.stack == 1 else (self.stack, *self.shape)

    @property
    def scale(self) -> float:
        """The factor that maps uint8 frames to [0, 1]; 1 for other dtypes."""
        return 1 / self.high if self.dtype == "uint8" else 1.0

    @property
    def is_image(self) -> bool:
        return self.layout not in ("vector", "one-hot")

    @property
    def size(self) -> int:
        """The number of values in a frame."""
        return math.prod(self.shape)

    @property
    def frame_bytes(self) -> int:
        return self.size * np.dtype(self.dtype).itemsize

    def zeros(self, *axes: int) -> Array:
        """Return arrays of zeros for as many observations, [*axes, *input_shape]."""
        return np.zeros((*axes, *self.input_shape), self.dtype)

    def describe(self) -> str:
        """Return the shape of the array, such as "4×84×84"."""
        return "×".join(map(str, self.input_shape)) or "1"

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "LeafSpec":
        return LeafSpec(**_with_tuples(values))


@dataclass(frozen=True)
class ObservationSpec:
    """The arrays of an observation, by their path in the environment's observation.

    The path of a single array is "". In a `Dict` it is the key, in a `Tuple` the number, and keys are
    joined by "/" where they are nested.
    """

    leaves: Mapping[str, LeafSpec]

    @staticmethod
    def array(shape: Sequence[int], dtype: str, layout: Layout, stack: int = 1) -> "ObservationSpec":
        """Return the specification of a single array."""
        return ObservationSpec({"": LeafSpec(tuple(shape), dtype, layout, stack)})

    @property
    def tree(self) -> Any:
        """The leaf if it is the only one, and else the leaves by path: the form of an observation."""
        return arrange(dict(self.leaves))

    def by_path(self, observation: Observation) -> dict[str, Any]:
        """Return the arrays of an observation by path, also where the only one is given by itself."""
        return dict(zip(self.leaves, leaves_of(observation).values(), strict=True))

    @property
    def stack(self) -> int:
        """The number of stacked frames, which all leaves share."""
        return next(iter(self.leaves.values())).stack

    def single(self, part: str) -> LeafSpec:
        """Return the only leaf; raise an error if a part that takes a single array is given several."""
        if len(self.leaves) > 1:
            raise QuantailError(
                f"{part} takes a single array, and the observation has the entries "
                f"{', '.join(self.leaves)}: use --torso auto, or a torso of your own that takes a dict."
            )
        return next(iter(self.leaves.values()))

    def zeros(self, *axes: int) -> Observation:
        """Return as many observations of zeros."""
        return map_leaves(lambda leaf: leaf.zeros(*axes), self.tree)

    def describe(self) -> str:
        """Return the arrays in words, such as "of shape 4×84×84" or "image 84×84×3, speed 1"."""
        if set(self.leaves) == {""}:
            return f"of shape {self.leaves[''].describe()}"
        return ", ".join(f"{path} {leaf.describe()}" for path, leaf in self.leaves.items())

    def to_dict(self) -> dict[str, Any]:
        """Return the specification as JSON."""
        return {path: asdict(leaf) for path, leaf in self.leaves.items()}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "ObservationSpec":
        return ObservationSpec({path: LeafSpec.from_dict(leaf) for path, leaf in values.items()})


@dataclass(frozen=True)
class ActionSpec:
    """Discrete actions, which are counted from 0 inside Quantail.

    Attributes:
        count: Number of actions.
        start: What the environment calls the first one.
        sizes: If the environment takes several numbers at once, how many values each has, counted from
            `starts`; an action is then one of their combinations, the last number changing fastest.
        starts: The first values of these numbers.
        masked: Whether the environment says which actions are allowed.
    """

    count: int
    start: int = 0
    sizes: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    masked: bool = False

    def to_env(self, actions: Any) -> Any:
        """Return one or many actions as the environment takes them."""
        if not self.sizes:
            return actions + self.start
        return np.stack(np.unravel_index(actions, self.sizes), axis=-1) + np.array(self.starts)

    def from_env(self, actions: Any) -> Any:
        """Return one or many actions of the environment as they are counted here."""
        if not self.sizes:
            return actions - self.start
        numbers = np.moveaxis(actions - np.array(self.starts), -1, 0)
        return np.ravel_multi_index(tuple(numbers), self.sizes)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "ActionSpec":
        return ActionSpec(**_with_tuples(values))


def _with_tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields read from JSON, which has lists in place of tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


# Observations as trees


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply a function to the leaves of an observation, and to those of others of the same form."""
    if not isinstance(tree, Mapping):
        return function(tree, *others)
    return {path: function(leaf, *(one[path] for one in others)) for path, leaf in tree.items()}


def leaves_of(tree: Any) -> dict[str, Any]:
    """Return the leaves of an observation by path; the path of a single array is ""."""
    return dict(tree) if isinstance(tree, Mapping) else {"": tree}


def arrange(leaves: Mapping[str, Any]) -> Any:
    """Return leaves as an observation: a single one by itself, several by path."""
    return next(iter(leaves.values())) if len(leaves) == 1 else dict(leaves)


def stack_observations(observations: Sequence[Observation]) -> Observation:
    """Return observations of one form as a batch."""
    return map_leaves(lambda *leaves: np.stack(leaves), *observations)


def set_row(batch: Observation, index: int, observation: Observation) -> None:
    """Write an observation into a batch of NumPy arrays."""
    for leaf, row in _pairs(batch, observation):
        leaf[index] = row


def row_of(batch: Observation, index: Any) -> Observation:
    """Return an observation of a batch, or several."""
    return map_leaves(lambda leaf: leaf[index], batch)


def newest_frame(spec: ObservationSpec, observation: Observation) -> Observation:
    """Return the newest frame of an observation: the observation itself, or the last of its stack."""
    return observation if spec.stack == 1 else map_leaves(lambda leaf: leaf[-1], observation)


def newest_frames(spec: ObservationSpec, batch: Observation) -> Observation:
    """Return a view of the newest frame of each observation of a batch."""
    return batch if spec.stack == 1 else map_leaves(lambda leaf: leaf[:, -1], batch)


def to_tensors(observation: Observation) -> Observation:
    """Return NumPy arrays as tensors that share their memory."""
    return map_leaves(torch.from_numpy, observation)


def to_arrays(observation: Observation) -> Observation:
    """Return tensors of the CPU as NumPy arrays that share their memory."""
    return map_leaves(lambda tensor: tensor.numpy(), observation)


def to_device(observation: Observation, device: torch.device, **options: Any) -> Observation:
    """Return tensors on a device."""
    return map_leaves(lambda tensor: tensor.to(device, **options), observation)


def length(batch: Observation) -> int:
    """Return the number of observations in a batch."""
    return len(next(iter(leaves_of(batch).values())))


def same(one: Observation, other: Observation) -> bool:
    """Return whether two observations have equal values."""
    return all(np.array_equal(a, b) for a, b in _pairs(one, other))


def content_of(observation: Observation) -> bytes:
    """Return the bytes of an observation, by which it can be recognised."""
    return b"".join(np.ascontiguousarray(leaf).tobytes() for leaf in leaves_of(observation).values())


def _pairs(tree: Observation, other: Observation) -> Iterator[tuple[Any, Any]]:
    matching = leaves_of(other)
    for path, leaf in leaves_of(tree).items():
        yield leaf, matching[path]
