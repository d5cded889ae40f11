"""The verdict of a calibration, in words."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from quantail.distributions import ReturnDistribution
from quantail.evaluation.calibration.ranks import COVERAGE_TAUS, Array
from quantail.risk import CVaR

MIN_EPISODES = 30  # fewer episodes do not allow a verdict
TAIL = 0.05  # share of the returns in each tail
MIN_MISCALIBRATION = 0.03  # smaller mean distances of the coverage from τ are not reported
TAIL_RATIO = 1.5  # a tail is too heavy if it holds more than this multiple of the expected returns
TAIL_DEVIATIONS = 0.25  # smaller differences between tail means, in deviations, are not reported

Kind = Literal["true", "close", "wrong", "unknown"]


@dataclass(frozen=True)
class Verdict:
    """Whether the predicted distributions are correct, as far as the sample shows, with a sentence."""

    kind: Kind
    words: str


@dataclass(frozen=True)
class Tail:
    """Mean of the lowest or highest 5 % of prediction errors: as predicted, and as measured."""

    predicted: float
    measured: float


def tails(predicted: Array, measured: Array) -> tuple[Tail, Tail]:
    """Return the lower and the upper tail of two distributions of equally likely prediction errors."""
    both = np.stack([predicted, measured])
    worst, best = (
        (sign * CVaR(TAIL).value(ReturnDistribution.of(sign * both))).tolist() for sign in (1, -1)
    )
    return Tail(*worst), Tail(*best)


@dataclass(frozen=True)
class Evidence:
    """Everything that the verdict depends on."""

    episodes: int
    ranks: Array
    coverage: Array  # at COVERAGE_TAUS
    low: Array  # lower bound of the coverage
    high: Array  # upper bound of the coverage
    miscalibration: float  # mean distance of the coverage from τ
    miscalibration_noise: float  # 99 % quantile of the miscalibration that is due to sampling noise
    distance: float  # 1-Wasserstein distance between predicted and measured prediction errors
    distance_noise: float  # 95 % quantile of the distance that is due to sampling noise
    tolerance: float  # smaller differences do not matter, in units of the return
    deviation: float
    worst: Tail
    best: Tail

    @property
    def is_miscalibrated(self) -> bool:
        """Whether the coverage differs from τ by more than sampling noise and by a relevant amount."""
        return self.miscalibration > max(self.miscalibration_noise, MIN_MISCALIBRATION)

    @property
    def is_close(self) -> bool:
        """Whether the distance, less its sampling noise, is within the tolerance."""
        return self.distance - self.distance_noise <= self.tolerance

    @property
    def lower_tail_is_heavier(self) -> bool:
        """Whether the lower tail holds more returns than predicted, and lower ones."""
        low = COVERAGE_TAUS <= TAIL
        too_many = bool((self.low[low] > TAIL_RATIO * COVERAGE_TAUS[low]).any())
        return too_many and self._matters(self.worst.predicted - self.worst.measured)

    @property
    def upper_tail_is_heavier(self) -> bool:
        """Whether the upper tail holds more returns than predicted, and higher ones."""
        low = COVERAGE_TAUS[::-1] >= 1 - TAIL
        expected = (1 - COVERAGE_TAUS[::-1])[low]
        too_many = bool(((1 - self.high[::-1])[low] > TAIL_RATIO * expected).any())
        return too_many and self._matters(self.best.measured - self.best.predicted)

    def _matters(self, difference: float) -> bool:
        return difference > max(TAIL_DEVIATIONS * self.deviation, self.tolerance)


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict; differences within sampling noise or tolerance are not called wrong."""
    if evidence.episodes < MIN_EPISODES:
        return Verdict(
            "unknown",
            f"too few episodes for a verdict: {evidence.episodes}, at least {MIN_EPISODES} are needed",
        )
    tail = [
        words
        for words, is_so in (
            ("the worst returns are worse than predicted", evidence.lower_tail_is_heavier),
            ("the best returns are better than predicted", evidence.upper_tail_is_heavier),
        )
        if is_so
    ]
    if not evidence.is_miscalibrated:
        if tail:
            return Verdict("wrong", " and ".join(tail))
        return Verdict("true", "no sign that the predicted distributions are wrong")
    if evidence.is_close:
        close = "predicted distributions are close to the measured returns"
        return (
            Verdict("wrong", f"{close}, but {' and '.join(tail)}") if tail else Verdict("close", close)
        )
    shape = _shape(evidence.ranks)
    if shape.endswith("wide"):
        return Verdict("wrong", ", and ".join([shape, *tail]))
    return Verdict("wrong", shape)


def _shape(ranks: Array) -> str:
    outer = ((ranks < 0.1) | (ranks > 0.9)).mean()  # 0.2 for a correct distribution
    below = (ranks < 0.5).mean()
    if outer < 0.12:
        return "predicted distributions are too wide"
    if abs(below - 0.5) > 0.15:
        way = (
            "too high: measured returns are lower"
            if below > 0.5
            else "too low: measured returns are higher"
        )
        return f"predicted returns are {way}"
    return f"predicted distributions are too {'narrow' if outer > 0.2 else 'wide'}"
