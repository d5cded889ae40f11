"""What a torso is: the part that turns a batch of observations into a batch of feature vectors."""

from typing import Any, ClassVar

from torch import Tensor, nn

from quantail.part_config import NoConfig
from quantail.spaces import Observation, ObservationSpec


class Torso(nn.Module):
    """Base class of torsos: from observations [B, ...] to features ψ(x) [B, d].

    A torso implements `__init__`, which sets `num_features`, and `forward`. It says whether its features
    are `nonnegative`. Only then may a head use the product that skips zeros (see `products.py`), which
    is wrong for negative features.

    Args:
        observation: Shape, dtype and layout of the arrays of an observation, by path. A torso that takes
            one array asks `observation.single(...)` for it.
        config: The torso's own settings, an instance of its `Config`.
    """

    Config: ClassVar[type] = NoConfig  # a frozen dataclass: the torso's own settings
    nonnegative: bool = False  # whether it ends in a ReLU
    num_features: int  # d

    def __init__(self, observation: ObservationSpec, config: Any) -> None:
        super().__init__()
        self.observation, self.config = observation, config

    def forward(self, observations: Observation) -> Tensor:
        """Return ψ(x), [B, d].

        `observations` is a tensor [B, *input_shape], or a dict of tensors by path where the environment
        gives several arrays.
        """
        raise NotImplementedError

    def use_kernels(self) -> bool:
        """Use compiled kernels, and return whether the torso has any (see `kernels`)."""
        return False

    def use_dense_products(self) -> None:
        """Use torch alone again."""
