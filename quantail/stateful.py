"""Objects whose state is part of a checkpoint: they can save, restore and check it."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

State = Mapping[str, Any]  # JSON values and NumPy arrays


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
