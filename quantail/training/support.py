"""Check that returns stay within the range that a head can represent."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.stateful import State, require_keys, require_numbers


class SupportWatch:
    """Tracks the range of discounted returns and compares it with the support."""

    def __init__(self, value_min: float, value_max: float) -> None:
        self.value_min, self.value_max = value_min, value_max
        self.low, self.high = math.inf, -math.inf
        self.warned = 0.0  # how far outside the support returns were at the last warning

    def state_dict(self) -> dict[str, Any]:
        seen = self.low <= self.high
        return {"seen": [self.low, self.high] if seen else None, "warned": self.warned}

    def load_state_dict(self, state: State) -> None:
        require_keys(state, ("seen", "warned"))
        self.low, self.high = state["seen"] or (math.inf, -math.inf)
        self.warned = state["warned"]

    def check(self) -> None:
        require_numbers([self.warned, *((self.low, self.high) if self.low <= self.high else ())])

    def warning(self, returns: NDArray[np.float64]) -> str:
        """Return a warning if returns leave the support, again if they leave it twice as far, or ""."""
        self.low = min(self.low, float(returns.min()))
        self.high = max(self.high, float(returns.max()))
        outside = max(self.value_min - self.low, self.high - self.value_max)
        if outside <= 2 * self.warned:
            return ""
        self.warned = outside
        return (
            f"discounted returns from {self.low:.4g} to {self.high:.4g} were seen, but the head "
            f"represents only {self.value_min:g} to {self.value_max:g}: set value_min and value_max to "
            "at least that range."
        )
