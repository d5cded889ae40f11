"""Exploration: how the behaviour policy departs from the greedy one."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from quantail.envs.actions import Mask
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
        masks: Mask | None,
        num_envs: int,
        num_actions: int,
        epsilon: float,
        generator: np.random.Generator,
    ) -> Actions:
        """Return an action per environment.

        `values()` evaluates the network and returns Q_β, [num_envs, num_actions], which is −∞ for
        actions that are not allowed. `masks` says which are, in the same shape, or is None if all are.
        `epsilon` is how much to explore now, from 1 to 0, as the settings schedule it.
        """
        raise NotImplementedError


class EpsilonGreedy(Exploration):
    """A random action with probability ε, else the greedy one."""

    def choose(
        self,
        values: Callable[[], Tensor],
        masks: Mask | None,
        num_envs: int,
        num_actions: int,
        epsilon: float,
        generator: np.random.Generator,
    ) -> Actions:
        draws = generator.random((2, num_envs))  # in one call
        explore = draws[0] < epsilon
        actions = random_actions(draws[1], masks, num_actions)
        if not explore.all():
            actions = np.where(explore, actions, values().argmax(dim=1).cpu().numpy())
        return actions


def random_actions(draws: NDArray[np.float64], masks: Mask | None, num_actions: int) -> Actions:
    """Return uniform actions for numbers in [0, 1), among those that are allowed, one for each."""
    if masks is None:
        return (num_actions * draws).astype(np.int64)
    wanted = (masks.sum(axis=1) * draws).astype(np.int64)  # its number among the allowed ones
    actions: Actions = np.argmax(masks.cumsum(axis=1) > wanted[:, None], axis=1)
    return actions


EXPLORATIONS: dict[str, type[Exploration]] = {"epsilon-greedy": EpsilonGreedy}
