"""The mathematics of calibration: ranks, their intervals, and how far apart laws and returns are."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from quantail.evaluation.intervals import CONFIDENCE, REPEATS

Array = NDArray[np.float64]
LEVELS = np.concatenate([[0.01, 0.02], np.linspace(0.05, 0.95, 19), [0.98, 0.99]])
EVEN = slice(2, -2)  # of LEVELS: those that are evenly spread
GRID = (np.arange(1_000) + 0.5) / 1_000
POOLED = 5_000  # laws at most that are taken together
AT_ONCE = 4_000_000  # numbers of a bootstrap in memory
NEARLY = 0.1  # of the returns' deviation: differences that do not matter
ROUGHLY = 0.02  # of the returns' size: the same, where they do not vary


def deviation(means: Array, returns: Array) -> float:
    """Of returns about their predicted means: how far the agent is surprised."""
    return float(np.sqrt(np.square(returns - means).mean()))


def grain(means: Array, returns: Array) -> float:
    """The size below which differences do not count, in units of the return."""
    size = float(np.sqrt(np.square(returns).mean()))
    return max(NEARLY * deviation(means, returns), ROUGHLY * size, 1e-12)


def even_noise(count: int, generator: np.random.Generator) -> Array:
    """Standard normal numbers in any order, one from each of so many equally likely ranges."""
    levels = (generator.permutation(count) + generator.random(count)) / count
    return np.asarray(torch.special.ndtri(torch.from_numpy(levels)).numpy())


def rank(laws: Array, returns: Array, smoothing: float, noise: Array) -> Array:
    """F(return + noise), where F is the law of a predicted return + noise.

    The noise is standard normal, times `smoothing`.
    For a true law this is uniform on [0, 1], whether it has atoms, is smooth, or is a mixture. What
    differs by less than `smoothing` hardly shows.
    """
    blurred = returns + smoothing * noise
    apart = torch.from_numpy((blurred[:, None] - laws) / smoothing)
    return np.asarray(torch.special.ndtr(apart).mean(dim=1).numpy())


def disorder(quantiles: Array) -> Array:
    """How far quantiles at rising levels are from rising order, and how far they could be: [steps, 2].

    The mean distance from the same numbers in rising order; the most is theirs in falling order.
    """
    rising = np.sort(quantiles, axis=1)
    apart = np.abs(quantiles - rising).mean(axis=1)
    most = np.abs(rising[:, ::-1] - rising).mean(axis=1)
    return np.stack([apart, most], axis=1)


def quantiles_of(sample: Array) -> Array:
    """At the levels of GRID."""
    return np.asarray(np.sort(sample)[(GRID * len(sample)).astype(int)])


def pooled(laws: Array) -> Array:
    """Quantiles, at GRID, of all laws taken together, each about its own mean."""
    some = laws[:: -(-len(laws) // POOLED)]
    return quantiles_of((some - some.mean(axis=1, keepdims=True)).ravel())


def resampled(episodes: int, repeats: int) -> Iterator[NDArray[np.int64]]:
    """How often each episode is drawn in each repeat of a bootstrap: blocks of [repeats, episodes]."""
    generator = np.random.default_rng(0)
    even = np.full(episodes, 1 / episodes)
    block = max(1, AT_ONCE // episodes)
    sizes = [min(block, repeats - begun) for begun in range(0, repeats, block)]
    return (generator.multinomial(episodes, even, size=size) for size in sizes)


def redrawn(sums: Array, counts: NDArray[np.int64]) -> Array:
    """Σ sums / Σ counts of redrawn episodes: sums [episodes, figures], counts [episodes].

    [repeats, figures]. Long episodes count by their steps.
    """
    blocks = resampled(len(counts), REPEATS)
    return np.concatenate([weights @ sums / (weights @ counts)[:, None] for weights in blocks])


def interval(shares: Array) -> tuple[Array, Array]:
    """The middle 95 % of what was redrawn."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(shares, [tail, 1 - tail], axis=0)
    return low, high


def chance_distance(sample: Array, episodes: NDArray[np.int64]) -> float:
    """The 1-Wasserstein distance that 95 % of samples with redrawn episodes (from 0 on) do not pass."""
    order = np.argsort(sample)
    rising, whose = sample[order], episodes[order]
    own = quantiles_of(sample)
    apart = []
    for block in resampled(int(episodes.max()) + 1, 200):
        for weights in block:
            cumulated = np.cumsum(weights[whose])
            index = np.searchsorted(cumulated, GRID * cumulated[-1])
            apart.append(np.abs(rising[index] - own).mean())
    return float(np.quantile(apart, CONFIDENCE))
