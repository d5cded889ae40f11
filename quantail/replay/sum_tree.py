"""A tree of sums: draws an index in proportion to its weight, many at a time."""

import numpy as np
from numpy.typing import NDArray

from quantail.replay.frames import Index

FAN = 128  # children of a node: three levels for a million leaves
Weights = NDArray[np.float64]


class SumTree:
    """Weights of `size` leaves, and above them the sums of FAN at a time up to one root.

    Every sum is made anew from its children, so the tree is a function of its leaves alone and does
    not drift.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.levels: list[Weights] = [np.zeros(count) for count in _level_sizes(size)]

    @staticmethod
    def bytes_needed(size: int) -> int:
        """What the tree takes for so many leaves."""
        return 8 * sum(_level_sizes(size))

    @property
    def leaves(self) -> Weights:
        return self.levels[0][: self.size]

    @property
    def total(self) -> float:
        return float(self.levels[-1].sum())

    def set(self, index: Index, weights: Weights) -> None:
        """Give leaves their weights; of one that is named twice the last counts."""
        self.levels[0][index] = weights
        for below, above in zip(self.levels, self.levels[1:], strict=False):
            index = np.unique(index // FAN)
            above[index] = below.reshape(-1, FAN)[index].sum(axis=1)

    def find(self, targets: Weights) -> Index:
        """For each target in [0, total) the leaf in whose share of the total it falls.

        A leaf of weight zero is never found, not even where rounding takes a target to the end.
        """
        node = np.zeros(len(targets), np.int64)
        left = targets.copy()
        for level in reversed(self.levels):
            children = level.reshape(-1, FAN)[node]  # [targets, FAN]
            edges = children.cumsum(axis=1)
            last = FAN - 1 - (children[:, ::-1] > 0).argmax(axis=1)
            child = np.minimum((left[:, None] >= edges).sum(axis=1), last)
            before = np.take_along_axis(edges - children, child[:, None], axis=1)[:, 0]
            left = np.maximum(left - before, 0)
            node = node * FAN + child
        return node

    def check_valid(self) -> None:
        """Raise if a sum is not that of its children, or a weight is none."""
        assert (self.levels[0] >= 0).all()
        assert not self.levels[0][self.size :].any()
        for below, above in zip(self.levels, self.levels[1:], strict=False):
            sums = below.reshape(-1, FAN).sum(axis=1)
            assert (above[: len(sums)] == sums).all()
            assert not above[len(sums) :].any()


def _level_sizes(size: int) -> list[int]:
    """Nodes of each level, leaves first, each padded to a multiple of FAN."""
    sizes: list[int] = []
    while not sizes or sizes[-1] > FAN:
        sizes.append(-(-size // FAN) * FAN)
        size = sizes[-1] // FAN
    return sizes
