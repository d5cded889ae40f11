"""A sum tree that samples many indices at once in proportion to their weights."""

import numpy as np
from numpy.typing import NDArray

from quantail.replay.frames import Index

FAN_OUT = 128  # children of a node: three levels for a million leaves
Weights = NDArray[np.float64]


class SumTree:
    """The weights of `size` leaves and, level by level, the sums of FAN_OUT nodes up to the root.

    Every sum is recomputed from its children, so rounding errors do not accumulate and the tree depends
    only on its leaves.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.levels: list[Weights] = [np.zeros(count) for count in _level_sizes(size)]

    @staticmethod
    def bytes_needed(size: int) -> int:
        """Return the memory of a tree with this many leaves."""
        return 8 * sum(_level_sizes(size))

    @property
    def leaves(self) -> Weights:
        return self.levels[0][: self.size]

    @property
    def total(self) -> float:
        return float(self.levels[-1].sum())

    def set(self, index: Index, weights: Weights) -> None:
        """Set the weights of leaves. If an index occurs twice, its last weight is used."""
        self.levels[0][index] = weights
        for below, above in zip(self.levels, self.levels[1:], strict=False):
            index = np.unique(index // FAN_OUT)
            above[index] = below.reshape(-1, FAN_OUT)[index].sum(axis=1)

    def find(self, targets: Weights) -> Index:
        """Return, for each target in [0, total), the leaf whose interval of the cumulative sum holds it.

        Leaves of weight zero are never returned, even where rounding moves a target to the very end.
        """
        node = np.zeros(len(targets), np.int64)
        rest = targets.copy()
        for level in reversed(self.levels):
            children = level.reshape(-1, FAN_OUT)[node]  # [targets, FAN_OUT]
            edges = children.cumsum(axis=1)
            last = FAN_OUT - 1 - (children[:, ::-1] > 0).argmax(axis=1)
            child = np.minimum((rest[:, None] >= edges).sum(axis=1), last)
            before = np.take_along_axis(edges - children, child[:, None], axis=1)[:, 0]
            rest = np.maximum(rest - before, 0)
            node = node * FAN_OUT + child
        return node

    def check_valid(self) -> None:
        """Raise an AssertionError if a weight is negative or a sum differs from that of its children."""
        assert (self.levels[0] >= 0).all()
        assert not self.levels[0][self.size :].any()
        for below, above in zip(self.levels, self.levels[1:], strict=False):
            sums = below.reshape(-1, FAN_OUT).sum(axis=1)
            assert (above[: len(sums)] == sums).all()
            assert not above[len(sums) :].any()


def _level_sizes(size: int) -> list[int]:
    """Return the number of nodes of each level, leaves first, each padded to a multiple of FAN_OUT."""
    sizes: list[int] = []
    while not sizes or sizes[-1] > FAN_OUT:
        sizes.append(-(-size // FAN_OUT) * FAN_OUT)
        size = sizes[-1] // FAN_OUT
    return sizes
