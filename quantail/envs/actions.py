"""Actions of Gymnasium spaces, counted from 0, and the masks of those that are allowed."""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from quantail.errors import QuantailError
from quantail.spaces import ActionSpec

MASK = "action_mask"  # in `info`, or an entry of a Dict observation
MANY, TOO_MANY = 1_000, 100_000  # combinations of a MultiDiscrete space
Mask = NDArray[np.bool_]


def action_spec(space: gym.Space[Any], name: str) -> ActionSpec:
    """Return the actions of this space; raise an error if they are not discrete."""
    if isinstance(space, spaces.Discrete):
        return ActionSpec(int(space.n), int(space.start))
    if isinstance(space, spaces.MultiDiscrete):
        sizes, starts = space.nvec.ravel().tolist(), space.start.ravel().tolist()
    elif isinstance(space, spaces.MultiBinary):
        sizes, starts = [2] * math.prod(space.shape), [0] * math.prod(space.shape)
    else:
        raise QuantailError(
            f"{name} has {type(space).__name__} actions; Quantail supports Discrete, MultiDiscrete and "
            "MultiBinary ones: discretise the actions first."
        )
    if len(space.shape) != 1:
        raise QuantailError(
            f"{name} has actions of shape {space.shape}; Quantail supports a single row of numbers."
        )
    count = math.prod(sizes)
    if count > TOO_MANY:
        raise QuantailError(
            f"{name} has {count:,} combinations of actions; Quantail predicts the returns of each one, "
            f"and takes at most {TOO_MANY:,}: give the environment fewer or coarser actions."
        )
    if count > MANY:
        warnings.warn(
            f"{name} has {count:,} combinations of actions, and the network has an output for each: "
            "learning will be slow.",
            stacklevel=2,
        )
    return ActionSpec(count, 0, tuple(sizes), tuple(starts))


def without_mask(space: gym.Space[Any]) -> gym.Space[Any]:
    """Return an observation space without its entry for the mask, if it has one."""
    if not isinstance(space, spaces.Dict) or MASK not in space.spaces:
        return space
    return spaces.Dict({key: one for key, one in space.spaces.items() if key != MASK})


def find_mask(observation: Any, info: Mapping[str, Any]) -> Any:
    """Return the mask that comes with an observation, as the environment gives it; None if none."""
    if isinstance(observation, Mapping) and MASK in observation:
        return observation[MASK]
    return info.get(MASK)


def as_mask(given: Any, actions: ActionSpec) -> Mask:
    """Return a mask, [actions]; several numbers may have one each. Raise an error if it is none."""
    try:
        if actions.sizes and len(given) == len(actions.sizes) and np.ndim(given[0]) == 1:
            each = [np.asarray(one) for one in given]
            if tuple(len(one) for one in each) == actions.sizes:
                given = np.stack(np.meshgrid(*each, indexing="ij"), axis=-1).all(axis=-1).ravel()
        mask = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise QuantailError(f"{_wanted(actions)}, not {given!r}.") from error
    if mask.shape != (actions.count,) or not np.isin(mask, (0, 1)).all():
        shown = f"one of shape {mask.shape}" if mask.shape != (actions.count,) else f"{mask}"
        raise QuantailError(f"{_wanted(actions)}, not {shown}.")
    allowed: Mask = mask.astype(bool)
    return allowed


def _wanted(actions: ActionSpec) -> str:
    return f"an action mask takes a 0 or 1 for each of the {actions.count} actions"
