"""What a torso is: the part that turns a batch of observations into a batch of feature vectors."""

from typing import Any, ClassVar

from torch import Tensor, nn

from quantail.part_config import NoConfig
from quantail.spaces import ObservationSpec


class Torso(nn.Module):
    """Base class of torsos: from observations [B, ...] to features ψ(x) [B, d].

    A torso implements `__init__`, which sets `num_features`, and `forward`. It says whether its features
    are `nonnegative`. Only then may a head use the product that skips zeros (see `products.py`), which
    is wrong for negative features.

    Args:
        observation: Shape and dtype of the observations.
        config: The torso's own settings, an instance of its `Config`.
    """

    Config: ClassVar[type] = NoConfig  # a frozen dataclass: the torso's own settings
    nonnegative: bool = False  # whether it ends in a ReLU
    num_features: int  # d

    def __init__(self, observation: ObservationSpec, config: Any) -> None:
        super().__init__()
        self.observation, self.config = observation, config

    def forward(self, observations: Tensor) -> Tensor:
        """Return ψ(x): [B, *observation.input_shape] -> [B, d]."""
        raise NotImplementedError

    def use_kernels(self) -> bool:
        """Use compiled kernels, and return whether the torso has any (see `kernels`)."""
        return False

    def use_dense_products(self) -> None:
        """Use torch alone again."""
