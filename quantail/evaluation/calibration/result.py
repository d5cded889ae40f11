"""The figures of a calibration, as a table, as JSON and in words."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from quantail.evaluation.calibration.continuations import Spot
from quantail.evaluation.calibration.play import Trail
from quantail.evaluation.calibration.ranks import (
    EVEN,
    LEVELS,
    Array,
    chance_distance,
    deviation,
    interval,
    pooled,
    quantiles_of,
    redrawn,
)
from quantail.evaluation.calibration.verdict import Evidence, Tail, Verdict, judge, tails
from quantail.evaluation.sheets import Sheet
from quantail.risk import RiskMeasure

BINS = 20  # of the histogram
SCHEMA = 1  # of the JSON
SHOWN = (1, 2, 5, 10, 25, 50, 75, 90, 95, 98, 99)  # levels in the table, in percent


@dataclass(frozen=True)
class Calibration:
    """Where realised returns fall in the laws that were predicted for them."""

    env: str
    risk: RiskMeasure
    checkpoint: int  # steps of training behind the weights; 0 where that is not known
    seed: int
    trails: tuple[Trail, ...]
    grain: float  # differences below it do not count, in units of the return
    ranks: tuple[Array, ...]  # of each trail: uniform on [0, 1] where the law is true
    spots: tuple[Spot, ...] = ()
    remarks: tuple[str, ...] = ()  # what else must be known before believing it

    @cached_property
    def means(self) -> Array:
        """The predicted mean of every step."""
        return np.concatenate([trail.means for trail in self.trails])

    @cached_property
    def returns(self) -> Array:
        """The return that came, of every step."""
        return np.concatenate([trail.returns for trail in self.trails])

    @cached_property
    def coverage(self) -> Array:
        """The share of returns at or below the predicted quantile, for each of LEVELS.

        By the smoothed ranks: both the returns and the laws are blurred by the grain.
        """
        return np.array([(np.concatenate(self.ranks) <= level).mean() for level in LEVELS])

    def coverage_interval(self) -> tuple[Array, Array]:
        """95 % of the coverage, by bootstrap over whole episodes: steps of one are not independent."""
        return interval(self._redrawn)

    @cached_property
    def _redrawn(self) -> Array:
        """The coverage of redrawn episodes: [repeats, levels]."""
        below = np.array([[(ranks <= level).sum() for level in LEVELS] for ranks in self.ranks])
        return redrawn(below, np.array([len(ranks) for ranks in self.ranks]))

    @property
    def miscalibration(self) -> float:
        """Mean distance of the coverage from its level, 0.05 to 0.95: 0 is true, 0.5 is the worst."""
        return float(np.abs(self.coverage - LEVELS)[EVEN].mean())

    @property
    def crossing(self) -> float | None:
        """How far quantiles are from rising order: 0 all rise, 1 all fall; None where none can fall."""
        orders = [trail.order for trail in self.trails if trail.order is not None]
        if not orders:
            return None
        apart, most = np.concatenate(orders).sum(axis=0)
        return float(apart / most) if most else 0.0

    def _crossing_words(self) -> str:
        if self.crossing is None:
            return "does not apply, this head's law is in order however it is trained"
        width = np.concatenate([t.order for t in self.trails if t.order is not None])[:, 1].mean()
        narrow = ", of laws so narrow that it does not matter" if width < 2 * self.grain else ""
        return f"{self.crossing:.1%} (0 all rise, 100 % all fall){narrow}"

    @property
    def bias(self) -> float:
        """Mean of predicted minus realised returns."""
        return float((self.means - self.returns).mean())

    def bias_interval(self) -> tuple[float, float]:
        """95 % of the bias, by bootstrap over whole episodes."""
        errors = np.array([[(t.means - t.returns).sum()] for t in self.trails])
        low, high = interval(redrawn(errors, np.array([len(t.returns) for t in self.trails])))
        return float(low[0]), float(high[0])

    @property
    def deviation(self) -> float:
        """Of the returns about their predicted means."""
        return deviation(self.means, self.returns)

    @property
    def distance(self) -> float:
        """How far surprises are from what was predicted of them.

        Surprises are returns less their predicted means; all steps are taken together, and so are all
        laws. It is the 1-Wasserstein distance of the two, a lower bound of its mean over steps.
        """
        return self.evidence.distance

    @property
    def worst(self) -> Tail:
        """The mean of the lowest 5 % of surprises."""
        return self.evidence.worst

    @property
    def best(self) -> Tail:
        """The mean of the highest 5 % of surprises."""
        return self.evidence.best

    @cached_property
    def evidence(self) -> Evidence:
        """All that the verdict looks at."""
        surprises = self.returns - self.means
        predicted = pooled(np.concatenate([trail.laws for trail in self.trails]))
        came = quantiles_of(surprises)
        whose = np.repeat(np.arange(len(self.trails)), [len(trail.returns) for trail in self.trails])
        low, high = self.coverage_interval()
        apart = np.abs(self._redrawn - self.coverage)[:, EVEN].mean(axis=1)
        worst, best = tails(predicted, came)
        return Evidence(
            episodes=len(self.trails),
            ranks=np.concatenate(self.ranks),
            coverage=self.coverage,
            low=low,
            high=high,
            miscalibration=self.miscalibration,
            by_chance=float(np.quantile(apart, 0.99)),
            distance=float(np.abs(predicted - came).mean()),
            chance_distance=chance_distance(surprises, whose),
            grain=self.grain,
            deviation=self.deviation,
            worst=worst,
            best=best,
        )

    def histogram(self) -> Array:
        """Shares of ranks in BINS equal bins: flat where the law is true."""
        counts, _ = np.histogram(np.concatenate(self.ranks), bins=BINS, range=(0, 1))
        return np.asarray(counts / counts.sum())

    def judgement(self) -> Verdict:
        """Whether the laws are true, as far as it can be told."""
        return judge(self.evidence)

    def verdict(self) -> str:
        """The same in words."""
        return self.judgement().words

    def title(self) -> str:
        """Which agent in which world."""
        weights = f", checkpoint {self.checkpoint:,}" if self.checkpoint else ""
        return f"{self.env}{weights}, risk {self.risk}"

    def sheet(self) -> Sheet:
        """The figures."""
        low, high = self.coverage_interval()
        rows = [
            [f"{level:.2f}", f"{share:.3f}", f"{a:.3f} to {b:.3f}"]
            for level, share, a, b in zip(LEVELS, self.coverage, low, high, strict=True)
            if round(level * 100) in SHOWN
        ]
        columns = ["level", "returns below", "95 % interval"]
        title = f"{self.title()}: is the predicted distribution true?"
        return Sheet(title, columns, rows, [*self._notes(), *(f"note: {one}" for one in self.remarks)])

    def _notes(self) -> list[str]:
        bias = self.bias_interval()
        return [
            self.verdict(),
            f"{len(self.trails):,} episodes, {len(self.returns):,} steps; intervals by bootstrap over "
            "episodes",
            f"mean distance from the level {self.miscalibration:.3f} (by chance up to "
            f"{self.evidence.by_chance:.3f}); distance of the laws from what came {self.distance:.3g} "
            f"(by chance up to {self.evidence.chance_distance:.3g}), below {self.grain:.3g} is close",
            f"bias of the mean {self.bias:.3g} ({bias[0]:.3g} to {bias[1]:.3g}); returns deviate "
            f"{self.deviation:.3g} from it",
            f"the worst 5 % against the mean: predicted {self.worst.predicted:.3g}, came "
            f"{self.worst.came:.3g}; the best 5 %: {self.best.predicted:.3g}, came {self.best.came:.3g}",
            f"quantiles out of order: {self._crossing_words()}",
        ]

    def spots_sheet(self) -> Sheet:
        """The states that were played on from many times."""
        rows = [
            [
                str(s.episode),
                str(s.step),
                *map(_cell, (s.predicted, s.played, s.distance, s.noise, s.noise_high)),
                s.remark,
            ]
            for s in self.spots
        ]
        columns = ["episode", "step", "mean predicted", "mean played", "1-Wasserstein"]
        columns += ["of a true law", "at most (95 %)", ""]
        return Sheet("single states, played on from many times", columns, rows)

    def to_dict(self) -> dict[str, Any]:
        """Everything that a program may want, ready for JSON."""
        low, high = self.coverage_interval()
        return {
            "schema": SCHEMA,
            "env": self.env,
            "risk": str(self.risk),
            "checkpoint": self.checkpoint,
            "seed": self.seed,
            "episodes": len(self.trails),
            "steps": len(self.returns),
            "verdict": asdict(self.judgement()),
            "miscalibration": self.miscalibration,
            "miscalibration_by_chance": self.evidence.by_chance,
            "distance": self.distance,
            "distance_by_chance": self.evidence.chance_distance,
            "grain": self.grain,
            "deviation": self.deviation,
            "bias": self.bias,
            "bias_interval": list(self.bias_interval()),
            "worst": asdict(self.worst),
            "best": asdict(self.best),
            "crossing": self.crossing,
            "levels": LEVELS.tolist(),
            "coverage": self.coverage.tolist(),
            "coverage_low": low.tolist(),
            "coverage_high": high.tolist(),
            "histogram": self.histogram().tolist(),
            "states": [asdict(spot) for spot in self.spots],
            "notes": list(self.remarks),
        }


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
