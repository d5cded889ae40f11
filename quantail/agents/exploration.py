"""Exploration: how the behaviour policy departs from the greedy one."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from quantail.part_config import NoConfig

Actions = NDArray[np.int64]


class Exploration:
    """Chooses the actions of training. It has no state: all randomness comes from the generator."""

    Config: ClassVar[type] = NoConfig  # a frozen dataclass: its own settings

    def __init__(self, config: Any = None) -> None:
        self.config = self.Config() if config is None else config

    def choose(
        self,
        values: Callable[[], Tensor],
        num_envs: int,
        num_actions: int,
        epsilon: float,
        generator: np.random.Generator,
    ) -> Actions:
        """Return an action per environment.

        `values()` evaluates the network and returns Q_β, [num_envs, num_actions]. `epsilon` is how much
        to explore now, from 1 to 0, as the settings schedule it.
        """
        raise NotImplementedError


class EpsilonGreedy(Exploration):
    """A random action with probability ε, else the greedy one."""

    def choose(
        self,
        values: Callable[[], Tensor],
        num_envs: int,
        num_actions: int,
        epsilon: float,
        generator: np.random.Generator,
    ) -> Actions:
        draws = generator.random((2, num_envs))  # in one call
        explore = draws[0] < epsilon
        actions: Actions = (num_actions * draws[1]).astype(np.int64)
        if not explore.all():
            actions = np.where(explore, actions, values().argmax(dim=1).cpu().numpy())
        return actions


EXPLORATIONS: dict[str, type[Exploration]] = {"epsilon-greedy": EpsilonGreedy}
