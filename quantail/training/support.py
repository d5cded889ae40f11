"""Watches whether returns stay on the support of a categorical law."""

import math

import numpy as np
from numpy.typing import NDArray


class SupportWatch:
    """The range of the discounted returns seen so far, and whether the support holds it."""

    def __init__(self, least: float, most: float) -> None:
        self.least, self.most = least, most
        self.low, self.high = math.inf, -math.inf
        self._told = 0.0  # how far beyond the support the last warning was

    def see(self, returns: NDArray[np.float64]) -> str:
        """A warning where returns leave the support, again when they leave it twice as far; else ''."""
        self.low = min(self.low, float(returns.min()))
        self.high = max(self.high, float(returns.max()))
        beyond = max(self.least - self.low, self.high - self.most)
        if beyond <= 2 * self._told:
            return ""
        self._told = beyond
        return (
            f"discounted returns from {self.low:.4g} to {self.high:.4g} were seen, and atoms from "
            f"{self.least:g} to {self.most:g} cannot hold them: set value_min and value_max to at least "
            "that range."
        )
