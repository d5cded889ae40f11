"""What an observation looks like, as plain data that networks, replay and files share."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Layout = Literal["vector", "one-hot", "hw", "hwc", "chw"]


@dataclass(frozen=True)
class ObservationSpec:
    """One frame's shape, dtype and layout, and how many frames the agent sees together.

    The agent sees a frame as the environment gives it, or [stack, *frame] where stack is above 1.
    A `one-hot` frame is given as a whole number counted from `start` and stored as a vector. Bytes go
    up to `high`, and are scaled by it inside the network.
    """

    shape: tuple[int, ...]
    dtype: str
    layout: Layout
    stack: int = 1
    start: int = 0
    high: int = 255

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape that a network takes, without the batch."""
        return self.shape if self.stack == 1 else (self.stack, *self.shape)

    @property
    def scale(self) -> float:
        """What takes bytes to [0, 1]; 1 for anything else."""
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
    """Discrete actions: how many, and the number of the first one."""

    count: int
    start: int = 0
