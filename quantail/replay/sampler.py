"""What a sampler is: the part that decides how often each stored transition is replayed."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from quantail.part_config import NoConfig
from quantail.replay.frames import Index
from quantail.replay.store import ReplayStore
from quantail.stateful import State

CanStart = Callable[[Index, Index], NDArray[np.bool_]]


class Sampler:
    """The distribution by which steps of the store are sampled.

    A sampler implements `sample`. The other methods have defaults for a sampler without priorities and
    without state. It draws random numbers only from its generator, which is saved with the run. Indices
    are flat positions in the store's concatenated rings (`ReplayStore.indices`).
    """

    Config: ClassVar[type] = NoConfig  # a frozen dataclass: the sampler's own settings

    def __init__(self, store: ReplayStore, generator: np.random.Generator, config: Any) -> None:
        self.store = store
        self.generator = generator
        self.config = config

    @staticmethod
    def bytes_needed(capacity: int) -> int:
        """Return the memory of a sampler for this many steps, besides that of the store."""
        return 0

    def sample(self, count: int, can_start: CanStart) -> tuple[Index, Index]:
        """Sample environments and steps; those that start no complete transition are sampled again."""
        raise NotImplementedError

    def importance(self, steps: int) -> float:
        """Return β, the exponent of the importance weights, after this many steps of training."""
        return 1.0

    def weights(self, indices: Index, importance: float) -> NDArray[np.float32]:
        """Return the importance weights of sampled steps, normalised to a maximum of 1."""
        return np.ones(len(indices), np.float32)

    def update_priorities(self, indices: Index, priorities: Tensor) -> None:
        """Set the priorities of sampled steps after an update; they are on the learner's device."""

    def state_dict(self) -> State:
        """Return the state that a checkpoint must save."""
        return {}

    def load_state_dict(self, state: State) -> None:
        """Restore what `state_dict` returned, after the store itself was restored."""

    def check(self) -> None:
        """Raise an error if the state does not fit the store."""
