"""What the figures of a calibration say, in words."""

from dataclasses import dataclass
from typing import Literal

from quantail.evaluation.calibration.ranks import GRID, LEVELS, Array

FEWEST = 30  # episodes: with less there is no telling
TAIL = 0.05  # the worst and the best returns
UNEVEN = 0.03  # mean distance of the coverage from its level that is worth telling
FAR = 1.5  # times its level: a share of returns in a tail that is too large
HEAVY = 0.25  # deviations between a tail's predicted mean and that which came

Kind = Literal["true", "close", "wrong", "unknown"]


@dataclass(frozen=True)
class Verdict:
    """Whether the laws are true, as far as is known, and the sentence."""

    kind: Kind
    words: str


@dataclass(frozen=True)
class Tail:
    """The mean of the lowest, or highest, 5 % of surprises: as predicted, and as it came."""

    predicted: float
    came: float


def tails(predicted: Array, came: Array) -> tuple[Tail, Tail]:
    """Of quantile functions at GRID."""
    low = GRID < TAIL
    worst, best = (
        Tail(float(predicted[part].mean()), float(came[part].mean())) for part in (low, low[::-1])
    )
    return worst, best


@dataclass(frozen=True)
class Evidence:
    """All that the verdict looks at."""

    episodes: int
    ranks: Array
    coverage: Array  # at LEVELS
    low: Array  # and its interval
    high: Array
    miscalibration: float  # mean distance of the coverage from its level
    by_chance: float  # what 99 % of such samples of a true law do not pass
    distance: float  # 1-Wasserstein, of surprises from what was predicted of them
    chance_distance: float  # what 95 % of such samples do not pass
    grain: float  # differences below it do not matter
    deviation: float
    worst: Tail
    best: Tail

    @property
    def off(self) -> bool:
        """Whether the coverage leaves its level, beyond chance and by an amount worth telling."""
        return self.miscalibration > max(self.by_chance, UNEVEN)

    @property
    def close(self) -> bool:
        """Whether, for all that is known, the laws differ from what came by no more than matters."""
        return self.distance - self.chance_distance <= self.grain

    @property
    def worst_is_worse(self) -> bool:
        """Whether more returns than predicted are in the lowest tail, and lower."""
        low = LEVELS <= TAIL
        often = bool((self.low[low] > FAR * LEVELS[low]).any())
        return often and self._matters(self.worst.predicted - self.worst.came)

    @property
    def best_is_better(self) -> bool:
        """Whether more returns than predicted are in the highest tail, and higher."""
        low = LEVELS[::-1] >= 1 - TAIL
        often = bool(((1 - self.high[::-1])[low] > FAR * (1 - LEVELS[::-1])[low]).any())
        return often and self._matters(self.best.came - self.best.predicted)

    def _matters(self, apart: float) -> bool:
        return apart > max(HEAVY * self.deviation, self.grain)


def judge(evidence: Evidence) -> Verdict:
    """Few episodes tell nothing; chance is no error; small errors are close; others are named."""
    if evidence.episodes < FEWEST:
        return Verdict(
            "unknown", f"too few episodes to tell: {evidence.episodes}, and it takes {FEWEST} or more"
        )
    tail = [
        words
        for words, is_so in (
            ("the worst returns are worse than predicted", evidence.worst_is_worse),
            ("the best returns are better than predicted", evidence.best_is_better),
        )
        if is_so
    ]
    if not evidence.off:
        if tail:
            return Verdict("wrong", " and ".join(tail))
        return Verdict("true", "no sign that the predicted laws are wrong")
    if evidence.close:
        close = "predicted laws are close to what came"
        return (
            Verdict("wrong", f"{close}, but {' and '.join(tail)}") if tail else Verdict("close", close)
        )
    shape = _shape(evidence.ranks)
    if shape.endswith("wide"):
        return Verdict("wrong", ", and ".join([shape, *tail]))
    return Verdict("wrong", shape)


def _shape(ranks: Array) -> str:
    outer = ((ranks < 0.1) | (ranks > 0.9)).mean()  # 0.2 for a true law
    below = (ranks < 0.5).mean()
    if outer < 0.12:
        return "predicted laws are too wide"
    if abs(below - 0.5) > 0.15:
        way = "too high: returns come out lower" if below > 0.5 else "too low: returns come out higher"
        return f"predicted returns are {way}"
    return f"predicted laws are too {'narrow' if outer > 0.2 else 'wide'}"
