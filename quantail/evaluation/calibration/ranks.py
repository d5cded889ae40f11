"""The mathematics of calibration: ranks, coverage by bootstrap, and distances between distributions."""

import numpy as np
import torch
from numpy.typing import NDArray

from quantail.evaluation.intervals import CONFIDENCE, Counts, bootstrap

Array = NDArray[np.float64]
# Quantile fractions τ at which coverage is measured.
COVERAGE_TAUS = np.concatenate([[0.01, 0.02], np.linspace(0.05, 0.95, 19), [0.98, 0.99]])
EVEN = slice(2, -2)  # the evenly spaced part of COVERAGE_TAUS
GRID = (np.arange(1_000) + 0.5) / 1_000  # quantile fractions at which quantile functions are compared
MAX_POOLED = 5_000  # distributions that are pooled at most
NOISE_REPEATS = 200  # bootstrap samples from which the sampling noise of a distance is estimated
TOLERATED_DEVIATION = 0.1  # differences below this share of the returns' deviation do not matter
TOLERATED_SIZE = 0.02  # nor below this share of the returns' size, for returns that hardly vary


def deviation(means: Array, returns: Array) -> float:
    """Return the root mean square deviation of returns from their predicted means."""
    return float(np.sqrt(np.square(returns - means).mean()))


def tolerance(means: Array, returns: Array) -> float:
    """Return the size below which differences do not matter, in units of the return."""
    size = float(np.sqrt(np.square(returns).mean()))
    return max(TOLERATED_DEVIATION * deviation(means, returns), TOLERATED_SIZE * size, 1e-12)


def stratified_normal(count: int, generator: np.random.Generator) -> Array:
    """Sample normal numbers in random order, one from each of `count` equally likely ranges."""
    uniform = (generator.permutation(count) + generator.random(count)) / count
    return np.asarray(torch.special.ndtri(torch.from_numpy(uniform)).numpy())


def rank(distributions: Array, returns: Array, smoothing: float, noise: Array) -> Array:
    """Return F(return + noise), where F is the CDF of a predicted return + noise.

    The noise is standard normal, times `smoothing`. If the predicted distribution is correct, the rank
    is uniform on [0, 1], whether the distribution is discrete, continuous or a mixture. Errors smaller
    than `smoothing` hardly show.
    """
    smoothed = returns + smoothing * noise
    z = torch.from_numpy((smoothed[:, None] - distributions) / smoothing)
    return np.asarray(torch.special.ndtr(z).mean(dim=1).numpy())


def crossing(quantiles: Array) -> Array:
    """Return how far quantiles at increasing τ are from increasing order, and the maximum: [steps, 2].

    The first column is the mean distance from the sorted quantiles, the second is that distance for
    quantiles in decreasing order.
    """
    increasing = np.sort(quantiles, axis=1)
    distance = np.abs(quantiles - increasing).mean(axis=1)
    most = np.abs(increasing[:, ::-1] - increasing).mean(axis=1)
    return np.stack([distance, most], axis=1)


def quantiles_of(sample: Array) -> Array:
    """Return the quantiles of a sample at GRID."""
    return np.asarray(np.sort(sample)[(GRID * len(sample)).astype(int)])


def pooled_quantiles(distributions: Array) -> Array:
    """Return the quantiles at GRID of all distributions pooled, each centred on its own mean."""
    some = distributions[:: -(-len(distributions) // MAX_POOLED)]
    return quantiles_of((some - some.mean(axis=1, keepdims=True)).ravel())


def bootstrap_ratios(sums: Array, counts: NDArray[np.int64]) -> Array:
    """Return Σ sums / Σ counts over resampled episodes: [repeats, figures].

    `sums` is [episodes, figures] and `counts` is [episodes], so episodes are weighted by their steps.
    """
    return bootstrap(len(counts), lambda drawn: drawn @ sums / (drawn @ counts)[:, None])


def distance_noise(sample: Array, episodes: NDArray[np.int64]) -> float:
    """Return the 95 % quantile of the 1-Wasserstein distance between a sample and its bootstrap samples.

    `episodes` is the episode, counted from 0, of each number in `sample`; whole episodes are resampled.
    """
    order = np.argsort(sample)
    increasing, episode_of = sample[order], episodes[order]
    own = quantiles_of(sample)

    def distance(drawn: Counts) -> float:
        cumulated = np.cumsum(drawn[episode_of])  # one repeat at a time: there may be millions of steps
        index = np.searchsorted(cumulated, GRID * cumulated[-1])
        return float(np.abs(increasing[index] - own).mean())

    def distances(block: Counts) -> Array:
        return np.array([distance(drawn) for drawn in block])

    samples = bootstrap(int(episodes.max()) + 1, distances, NOISE_REPEATS)
    return float(np.quantile(samples, CONFIDENCE))
