"""The result of a calibration, as tables, as JSON and in words."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from quantail.evaluation.calibration.continuations import StateProbe
from quantail.evaluation.calibration.play import Rollout
from quantail.evaluation.calibration.ranks import (
    COVERAGE_TAUS,
    EVEN,
    Array,
    bootstrap_ratios,
    deviation,
    distance_noise,
    pooled_quantiles,
    quantiles_of,
)
from quantail.evaluation.calibration.verdict import Evidence, Tail, Verdict, judge, tails
from quantail.evaluation.intervals import interval
from quantail.evaluation.result_tables import ResultTable
from quantail.risk import RiskMeasure

BINS = 20  # of the histogram
SCHEMA = 1  # of the JSON
SHOWN = (1, 2, 5, 10, 25, 50, 75, 90, 95, 98, 99)  # τ in the table, in percent


@dataclass(frozen=True)
class Calibration:
    """Predicted return distributions compared with measured returns: the result of `calibrate`.

    Attributes:
        env: Name of the environment.
        risk: Risk measure of the policy.
        checkpoint: Number of training steps of the weights; 0 if unknown.
        seed: Seed of the episodes.
        rollouts: The episodes, with the predicted distribution and the measured return of every step.
        tolerance: Differences below this do not matter, in units of the return.
        ranks: The probability integral transform of each episode's returns: uniform on [0, 1] if the
            predicted distributions are correct.
        probes: The states that were continued many times.
        remarks: Reasons to read the result with care.
    """

    env: str
    risk: RiskMeasure
    checkpoint: int  # training steps of the weights; 0 if unknown
    seed: int
    rollouts: tuple[Rollout, ...]
    tolerance: float  # smaller differences do not matter, in units of the return
    ranks: tuple[Array, ...]  # of each rollout: uniform on [0, 1] if the distributions are correct
    probes: tuple[StateProbe, ...] = ()
    remarks: tuple[str, ...] = ()  # reasons to read the result with care

    @cached_property
    def means(self) -> Array:
        """The predicted mean of every step."""
        return np.concatenate([rollout.means for rollout in self.rollouts])

    @cached_property
    def returns(self) -> Array:
        """The measured return of every step."""
        return np.concatenate([rollout.returns for rollout in self.rollouts])

    @cached_property
    def coverage(self) -> Array:
        """The share of returns at or below the predicted τ-quantile, for each of COVERAGE_TAUS.

        Both the returns and the distributions are smoothed by the tolerance.
        """
        return np.array([(np.concatenate(self.ranks) <= tau).mean() for tau in COVERAGE_TAUS])

    def coverage_interval(self) -> tuple[Array, Array]:
        """Return the 95 % interval of the coverage, by bootstrap over whole episodes.

        Steps of one episode are not independent, so they are not resampled one by one.
        """
        return interval(self._bootstrap_coverage)

    @cached_property
    def _bootstrap_coverage(self) -> Array:
        """The coverage of resampled episodes: [repeats, taus]."""
        below = np.array([[(ranks <= tau).sum() for tau in COVERAGE_TAUS] for ranks in self.ranks])
        return bootstrap_ratios(below, np.array([len(ranks) for ranks in self.ranks]))

    @property
    def miscalibration(self) -> float:
        """Mean distance of the coverage from τ, for τ from 0.05 to 0.95: 0 is best, 0.5 is worst."""
        return float(np.abs(self.coverage - COVERAGE_TAUS)[EVEN].mean())

    @property
    def crossing(self) -> float | None:
        """Crossing: 0 if all quantiles increase with τ, 1 if all decrease; None if they cannot."""
        if self._crossings is None:
            return None
        distance, most = self._crossings.sum(axis=0)
        return float(distance / most) if most else 0.0

    @cached_property
    def _crossings(self) -> Array | None:
        """The crossing of every step, [steps, 2], for heads whose quantiles can cross."""
        found = [rollout.crossings for rollout in self.rollouts if rollout.crossings is not None]
        return np.concatenate(found) if found else None

    def _crossing_words(self) -> str:
        if self._crossings is None:
            return "does not apply, because the quantiles of this head cannot cross"
        width = self._crossings[:, 1].mean()
        narrow = ", but the distributions are so narrow that it does not matter"
        return (
            f"{self.crossing:.1%} (0 % all increase with τ, 100 % all decrease)"
            f"{narrow if width < 2 * self.tolerance else ''}"
        )

    @property
    def bias(self) -> float:
        """Mean of predicted minus measured returns."""
        return float((self.means - self.returns).mean())

    def bias_interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the bias, by bootstrap over whole episodes."""
        errors = np.array([[(one.means - one.returns).sum()] for one in self.rollouts])
        counts = np.array([len(one.returns) for one in self.rollouts])
        low, high = interval(bootstrap_ratios(errors, counts))
        return float(low[0]), float(high[0])

    @property
    def deviation(self) -> float:
        """Root mean square deviation of the returns from their predicted means."""
        return deviation(self.means, self.returns)

    @property
    def distance(self) -> float:
        """1-Wasserstein distance between measured and predicted prediction errors.

        A prediction error is a return minus its predicted mean. All steps are pooled, so this is a lower
        bound of the mean distance over steps.
        """
        return self.evidence.distance

    @property
    def worst(self) -> Tail:
        """The mean of the lowest 5 % of prediction errors."""
        return self.evidence.worst

    @property
    def best(self) -> Tail:
        """The mean of the highest 5 % of prediction errors."""
        return self.evidence.best

    @cached_property
    def evidence(self) -> Evidence:
        """Everything that the verdict depends on."""
        errors = self.returns - self.means
        predicted = pooled_quantiles(
            np.concatenate([rollout.distributions for rollout in self.rollouts])
        )
        measured = quantiles_of(errors)
        episodes = np.repeat(
            np.arange(len(self.rollouts)), [len(rollout.returns) for rollout in self.rollouts]
        )
        low, high = self.coverage_interval()
        distances = np.abs(self._bootstrap_coverage - self.coverage)[:, EVEN].mean(axis=1)
        worst, best = tails(predicted, measured)
        return Evidence(
            episodes=len(self.rollouts),
            ranks=np.concatenate(self.ranks),
            coverage=self.coverage,
            low=low,
            high=high,
            miscalibration=self.miscalibration,
            miscalibration_noise=float(np.quantile(distances, 0.99)),
            distance=float(np.abs(predicted - measured).mean()),
            distance_noise=distance_noise(errors, episodes),
            tolerance=self.tolerance,
            deviation=self.deviation,
            worst=worst,
            best=best,
        )

    def histogram(self) -> Array:
        """Return the shares of ranks in BINS equal bins: flat if the distributions are correct."""
        counts, _ = np.histogram(np.concatenate(self.ranks), bins=BINS, range=(0, 1))
        return np.asarray(counts / counts.sum())

    def judgement(self) -> Verdict:
        """Return whether the predicted distributions are correct, as far as the sample shows."""
        return judge(self.evidence)

    def verdict(self) -> str:
        """Return the verdict in words."""
        return self.judgement().words

    def title(self) -> str:
        """Return the environment, the checkpoint and the risk measure."""
        weights = f", checkpoint {self.checkpoint:,}" if self.checkpoint else ""
        return f"{self.env}{weights}, risk {self.risk.label}"

    def table(self) -> ResultTable:
        """Return the coverage as a table, with the verdict and all other figures below it."""
        low, high = self.coverage_interval()
        rows = [
            [f"{tau:.2f}", f"{share:.3f}", f"{a:.3f} to {b:.3f}"]
            for tau, share, a, b in zip(COVERAGE_TAUS, self.coverage, low, high, strict=True)
            if round(tau * 100) in SHOWN
        ]
        columns = ["τ", "returns below", "95 % interval"]
        title = f"{self.title()}: is the predicted return distribution correct?"
        return ResultTable(
            title, columns, rows, [*self._notes(), *(f"note: {one}" for one in self.remarks)]
        )

    def _notes(self) -> list[str]:
        bias = self.bias_interval()
        return [
            self.verdict(),
            f"{len(self.rollouts):,} episodes, {len(self.returns):,} steps; intervals by bootstrap over "
            "episodes",
            f"mean distance of the coverage from τ: {self.miscalibration:.3f} (sampling noise: up to "
            f"{self.evidence.miscalibration_noise:.3f}); distance between predicted and measured "
            f"returns: {self.distance:.3g} (sampling noise: up to {self.evidence.distance_noise:.3g}), "
            f"below {self.tolerance:.3g} is close",
            f"bias of the mean: {self.bias:.3g} ({bias[0]:.3g} to {bias[1]:.3g}); returns deviate by "
            f"{self.deviation:.3g} from the predicted mean",
            f"mean of the worst 5 %, relative to the predicted mean: predicted "
            f"{self.worst.predicted:.3g}, measured {self.worst.measured:.3g}; of the best 5 %: "
            f"predicted {self.best.predicted:.3g}, measured {self.best.measured:.3g}",
            f"quantile crossing: {self._crossing_words()}",
        ]

    def probes_table(self) -> ResultTable:
        """Return the table of the states that were continued many times."""
        rows = [
            [
                str(one.episode),
                str(one.step),
                *map(_cell, (one.predicted, one.measured, one.distance, one.noise, one.noise_high)),
                one.remark,
            ]
            for one in self.probes
        ]
        columns = ["episode", "step", "predicted mean", "measured mean", "1-Wasserstein"]
        columns += ["sampling noise", "at most (95 %)", ""]
        return ResultTable("single states, each continued many times", columns, rows)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, ready for JSON."""
        low, high = self.coverage_interval()
        return {
            "schema": SCHEMA,
            "env": self.env,
            "risk": str(self.risk),
            "checkpoint": self.checkpoint,
            "seed": self.seed,
            "episodes": len(self.rollouts),
            "steps": len(self.returns),
            "verdict": asdict(self.judgement()),
            "miscalibration": self.miscalibration,
            "miscalibration_noise": self.evidence.miscalibration_noise,
            "distance": self.distance,
            "distance_noise": self.evidence.distance_noise,
            "tolerance": self.tolerance,
            "deviation": self.deviation,
            "bias": self.bias,
            "bias_interval": list(self.bias_interval()),
            "worst": asdict(self.worst),
            "best": asdict(self.best),
            "crossing": self.crossing,
            "taus": COVERAGE_TAUS.tolist(),
            "coverage": self.coverage.tolist(),
            "coverage_low": low.tolist(),
            "coverage_high": high.tolist(),
            "histogram": self.histogram().tolist(),
            "states": [asdict(probe) for probe in self.probes],
            "notes": list(self.remarks),
        }


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
