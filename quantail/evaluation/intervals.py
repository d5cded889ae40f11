"""Confidence intervals by bootstrap: over episodes, and over the seeds of several games with rliable."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from quantail.errors import QuantailError
from quantail.evaluation.scores import AGGREGATES, Matrix, probability_of_improvement
from quantail.extras import require_extra

Counts = NDArray[np.int64]

REPEATS = 2_000
CONFIDENCE = 0.95
BLOCK_NUMBERS = 4_000_000  # numbers of a bootstrap that are in memory at once


def bootstrap(
    episodes: int, statistic: Callable[[Counts], Matrix], repeats: int = REPEATS
) -> NDArray[np.float64]:
    """Return a statistic of resampled episodes, [repeats, ...], with a fixed seed.

    `statistic` gets how often each repeat draws each episode, in blocks of [repeats, episodes], and
    returns one value or row of values for each repeat. The block size does not change the result.
    """
    generator = np.random.default_rng(0)
    uniform = np.full(episodes, 1 / episodes)
    block = max(1, BLOCK_NUMBERS // episodes)
    sizes = [min(block, repeats - start) for start in range(0, repeats, block)]
    return np.concatenate([statistic(generator.multinomial(episodes, uniform, size=n)) for n in sizes])


def interval(samples: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the central 95 % interval of bootstrap samples: [repeats, ...] -> two of [...]."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(samples, [tail, 1 - tail], axis=0)
    return low, high


def aggregate_intervals(scores: Matrix) -> dict[str, tuple[float, float]]:
    """Return the interval of each aggregate, from resampling the seeds within every game."""

    def all_at_once(sample: Matrix) -> Matrix:
        return np.array([aggregate(sample) for aggregate in AGGREGATES.values()])

    low, high = _intervals(scores, all_at_once)
    return {name: (float(low[i]), float(high[i])) for i, name in enumerate(AGGREGATES)}


def improvement_interval(better: Matrix, worse: Matrix) -> tuple[float, float]:
    """Return the interval of the probability of improvement, from resampling the seeds of both."""

    def both(x: Matrix, y: Matrix) -> Matrix:
        return np.array([probability_of_improvement(x, y)])

    if min(len(better), len(worse)) < 2:
        raise QuantailError("an interval over seeds needs two or more seeds of both agents.")
    with _rliable() as library:
        _, intervals = library.get_interval_estimates(
            {"pair": (better, worse)}, both, reps=REPEATS, confidence_interval_size=CONFIDENCE
        )
    low, high = intervals["pair"]
    return float(low[0]), float(high[0])


def mean_intervals(scores: Matrix) -> Matrix:
    """Return the interval of the mean over seeds at each point: [seeds, points] -> [2, points]."""
    return _intervals(scores, lambda sample: sample.mean(axis=0))


def performance_profiles(
    scores: Mapping[str, Matrix], taus: NDArray[np.float64]
) -> dict[str, tuple[Matrix, Matrix | None]]:
    """Return for each agent the share of runs above each score threshold τ, and its interval.

    An agent with one seed has no interval.
    """
    profiles: dict[str, tuple[Matrix, Matrix | None]] = {}
    for agent, matrix in scores.items():
        if len(matrix) < 2:
            profiles[agent] = (np.array([(matrix > tau).mean() for tau in taus]), None)
            continue
        with _rliable() as library:
            found = library.create_performance_profile(
                {agent: matrix}, taus, reps=REPEATS, confidence_interval_size=CONFIDENCE
            )
        profiles[agent] = (found[0][agent], found[1][agent])
    return profiles


def _intervals(scores: Matrix, statistic: object) -> Matrix:
    if len(scores) < 2:
        raise QuantailError("an interval over seeds needs two or more seeds, and there is only one.")
    with _rliable() as library:
        _, intervals = library.get_interval_estimates(
            {"agent": scores}, statistic, reps=REPEATS, confidence_interval_size=CONFIDENCE
        )
    result: Matrix = intervals["agent"]
    return result


@contextmanager
def _rliable() -> Iterator[ModuleType]:
    """Provide rliable with a fixed seed, so that intervals are reproducible.

    rliable resamples with numpy's global generator whatever random_state it gets. That generator is
    seeded here and restored afterwards.
    """
    require_extra("stats", "an interval over seeds")
    from rliable import library

    state = np.random.get_state()
    np.random.seed(0)
    try:
        yield library
    finally:
        np.random.set_state(state)
