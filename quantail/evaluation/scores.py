"""Human-normalised scores and their aggregates over games. Matrices are [runs, games]."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quantail.evaluation.games import VIDEO_PINBALL, Baseline, baselines

Matrix = NDArray[np.float64]


def median(scores: Matrix) -> float:
    """Return the median over games of the mean over runs."""
    return float(np.median(scores.mean(axis=0)))


def mean(scores: Matrix) -> float:
    """Return the mean over games and runs."""
    return float(scores.mean())


def interquartile_mean(scores: Matrix) -> float:
    """Return the mean of the middle half of all runs of all games."""
    ordered = np.sort(scores, axis=None)
    cut = ordered.size // 4
    return float(ordered[cut : ordered.size - cut].mean())


def human_gap(scores: Matrix) -> float:
    """Return the mean gap to human play: max(1 − score, 0), clipped at 1 (the paper's appendix)."""
    return float(np.clip(1 - scores.mean(axis=0), 0, 1).mean())


def optimality_gap(scores: Matrix) -> float:
    """Return 1 − the mean of scores clipped above at 1 (Agarwal et al. 2021)."""
    return float(1 - np.minimum(scores, 1).mean())


def probability_of_improvement(better: Matrix, worse: Matrix) -> float:
    """Return the mean over games of P(a run of `better` scores higher), where ties count half.

    The matrices are [runs, games] of the same games; their numbers of runs may differ.
    """
    gaps = better[:, None] - worse[None]
    return float(((gaps > 0) + 0.5 * (gaps == 0)).mean())


AGGREGATES: dict[str, Callable[[Matrix], float]] = {
    "median": median,
    "iqm": interquartile_mean,
    "human_gap": human_gap,
    "optimality_gap": optimality_gap,
    "mean": mean,
}


@dataclass(frozen=True)
class Normalised:
    """Human-normalised scores of one agent, under both conventions for Video Pinball."""

    games: tuple[str, ...]
    without_human: tuple[str, ...]  # games left out, because there is no published human score
    as_in_table: Matrix  # with Video Pinball's random score as in the table
    random_zero: Matrix  # with Video Pinball's random score taken as 0
    human_starts: bool

    @property
    def scores(self) -> Matrix:
        """Return the scores that all aggregates but the mean are based on.

        From human starts, random play beats the human in Video Pinball, so it is taken as 0.
        """
        return self.random_zero if self.human_starts else self.as_in_table

    @property
    def runs(self) -> int:
        return len(self.scores)

    @property
    def has_video_pinball(self) -> bool:
        return VIDEO_PINBALL in self.games

    def aggregates(self) -> dict[str, float]:
        """Return every aggregate, and the mean under both conventions for Video Pinball."""
        values = {name: aggregate(self.scores) for name, aggregate in AGGREGATES.items()}
        return values | {"mean": mean(self.as_in_table), "mean_random_zero": mean(self.random_zero)}


def normalise(raw: Mapping[str, list[float]], human_starts: bool = False) -> Normalised:
    """Return the human-normalised scores of raw ones, given as a list of runs for each game.

    Every game counts with the same number of runs: where there are more, the first ones are used.
    """
    known = baselines(human_starts)
    games = tuple(game for game in raw if game in known)
    runs = min((len(raw[game]) for game in games), default=0)

    def matrix(table: Mapping[str, Baseline]) -> Matrix:
        columns = [[table[game].normalise(score) for score in raw[game][:runs]] for game in games]
        return np.array(columns, dtype=np.float64).reshape(len(games), runs).T

    left_out = tuple(game for game in raw if game not in known)
    zero = with_random_zero(known)
    return Normalised(games, left_out, matrix(known), matrix(zero), human_starts)


def with_random_zero(known: Mapping[str, Baseline]) -> dict[str, Baseline]:
    """Return the baselines with Video Pinball's random score taken as 0."""
    return {**known, VIDEO_PINBALL: Baseline(0.0, known[VIDEO_PINBALL].human)}
