"""Objects whose state is part of a checkpoint: they can save, restore and check it."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

State = Mapping[str, Any]  # JSON values and NumPy arrays
# The types of arrays that a file of a checkpoint takes.
ARRAYS = {"bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))}
ARRAYS |= {"float16", "float32", "float64"}


class Stateful(Protocol):
    """A component of a run. A checkpoint is a list of them (`training/components.py`)."""

    def state_dict(self) -> State:
        """Return everything that the next steps depend on, as JSON values and NumPy arrays."""

    def load_state_dict(self, state: State) -> None:
        """Restore what `state_dict` returned."""

    def check(self) -> None:
        """Raise an error if the state breaks an invariant of the component."""


def require_keys(state: State, names: Iterable[str]) -> None:
    """Raise an error unless a state has exactly these entries."""
    expected = set(names)
    for name in sorted(expected ^ state.keys()):
        raise ValueError(f"it {'lacks' if name in expected else 'has an unknown entry'} {name}")


def require_counts(values: Iterable[Any]) -> None:
    """Raise an error unless all values are non-negative integers."""
    if not all(type(value) is int and value >= 0 for value in values):
        raise ValueError("a count is not a non-negative integer")


def require_numbers(values: Iterable[Any]) -> None:
    """Raise an error unless all values are finite numbers."""
    if not all(type(value) in (int, float) and math.isfinite(value) for value in values):
        raise ValueError("a number is not finite")


def require_storable(state: object) -> None:
    """Raise an error unless a state is a dictionary of JSON values and NumPy arrays of numbers."""
    if not isinstance(state, Mapping):
        raise TypeError(f"a state is a dictionary, not {state!r}")
    for name, value in state.items():
        if not isinstance(name, str):
            raise TypeError(f"a name in a state is a string, not {name!r}")
        if isinstance(value, np.ndarray):
            if value.dtype.name not in ARRAYS:
                raise TypeError(f"the array {name!r} is of {value.dtype}, which cannot be saved")
            continue
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"{name!r} has a value that JSON does not take, {error}") from error
