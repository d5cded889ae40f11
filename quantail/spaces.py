"""Descriptions of observations and actions that networks, replay and files share."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Layout = Literal["vector", "one-hot", "hw", "hwc", "chw"]


@dataclass(frozen=True)
class ObservationSpec:
    """The shape, dtype and layout of a frame, and the number of stacked frames in an observation.

    An observation is a single frame if `stack` is 1, and [stack, *frame] otherwise. An environment gives
    a `one-hot` frame as an integer that counts from `start`; it is stored as a vector. Frames of dtype
    uint8 have values up to `high`, and the network divides them by it.
    """

    shape: tuple[int, ...]
    dtype: str
    layout: Layout
    stack: int = 1
    start: int = 0
    high: int = 255

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
        return self.layout in ("hw", "hwc", "chw")

    @property
    def frame_bytes(self) -> int:
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "shape": list(self.shape)}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "ObservationSpec":
        return ObservationSpec(**{**values, "shape": tuple(values["shape"])})


@dataclass(frozen=True)
class ActionSpec:
    """Discrete actions: their number, and the value of the first one."""

    count: int
    start: int = 0
