"""Write the evaluations of a study as one tidy table, and read them back for figures."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quantail.errors import QuantailError
from quantail.experiments.folder import StudyFolder
from quantail.experiments.study import Combination, Job, Study
from quantail.files import write_text
from quantail.runs.tables import read_rows
from quantail.trust import Trust

Array = NDArray[np.float64]

FIRST = ("job", "env", "config", "agent")
THEN = ("seed", "total_steps", "steps", "frames", "policy", "protocol", "risk", "episodes")
SCORES = ("mean", "std", "min", "q25", "median", "q75", "max")


def write_results(folder: StudyFolder) -> None:
    """Collect all evaluations of all runs in results.csv; without any run, leave the file unchanged."""
    study = folder.read()
    axes = [axis.name for axis in study.grid if axis.name not in (*FIRST, *THEN)]
    header = [*FIRST, *axes, *THEN, *SCORES]
    rows: list[list[str]] = []
    for job in folder.jobs.values():
        rows += _rows(folder, job, study, header)
    if not rows and folder.results.exists():
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    steps = header.index("steps")
    rows.sort(key=lambda row: (row[0], int(row[steps])))
    writer.writerows(rows)
    write_text(folder.results, text.getvalue())


def _rows(folder: StudyFolder, job: Job, study: Study, header: Sequence[str]) -> list[list[str]]:
    values = job.combination.places or [""] * len(study.grid)
    about = {
        **{axis.name: value for axis, value in zip(study.grid, values, strict=True)},
        "job": job.name,
        "env": job.env,
        "config": job.combination.label,
        "agent": job.config.run.agent,
        "seed": str(job.seed),
        "total_steps": str(job.config.run.steps),
    }
    rows = read_rows(folder.run(job.name).table("evaluations"))
    return [[{**row, **about}[name] for name in header] for row in rows]


@dataclass(frozen=True)
class Trace:
    """The evaluations of one run in results.csv, and the score of random play before training."""

    job: Job
    steps: Array
    frames: Array
    means: Array
    random: float
    protocol: str
    episodes: int

    @property
    def done(self) -> bool:
        return bool(len(self.steps)) and self.steps[-1] >= self.job.config.run.steps

    def early(self, window: float) -> float:
        """Return the mean evaluation in the first part of training; NaN until that part is complete."""
        return self._within(0.0, window)

    def late(self, window: float) -> float:
        """Return the mean evaluation in the last part of training; NaN until training is complete."""
        return self._within(1.0 - window, 1.0)

    def _within(self, low: float, high: float) -> float:
        total = self.job.config.run.steps
        inside = (self.steps > low * total) & (self.steps <= high * total)
        every = self.job.config.evaluation.evaluation_every
        last = total if high == 1.0 else high * total // every * every
        if not inside.any() or self.steps[-1] < last:
            return float("nan")
        return float(self.means[inside].mean())


@dataclass(frozen=True)
class Results:
    """A study with the results of its runs so far."""

    study: Study
    traces: tuple[Trace, ...]
    planned: int  # runs

    @property
    def done(self) -> int:
        return sum(trace.done for trace in self.traces)

    @property
    def partial(self) -> str:
        """Return how many runs are done, or an empty string if all are."""
        return "" if self.done == self.planned else f"partial: {self.done} of {self.planned} runs done"

    @cached_property
    def configs(self) -> tuple[Combination, ...]:
        return tuple(self.study.configs())

    def of(self, config: Combination, env: str) -> list[Trace]:
        """Return the runs of one combination on one game, in the order of seeds."""
        found = [one for one in self.traces if one.job.combination == config and one.job.env == env]
        return sorted(found, key=lambda one: one.job.seed)


def read_results(path: str | Path, trust: Trust = ()) -> Results:
    """Read the results of a study from its folder, which needs only study.json and results.csv.

    Args:
        path: The folder of the study.
        trust: Modules that may be imported where study.json names them.
    """
    folder = StudyFolder(path, trust)
    study = folder.read()
    if any(folder.run(name).table("evaluations").exists() for name in folder.jobs):
        write_results(folder)
    if not folder.results.exists():
        raise QuantailError(f"{folder.path} has no results yet.")
    by_job: dict[str, list[dict[str, str]]] = {}
    try:
        with folder.results.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                by_job.setdefault(row["job"], []).append(row)
        known = {name: rows for name, rows in by_job.items() if name in folder.jobs}
        traces = [_trace(folder.jobs[name], rows) for name, rows in known.items()]
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise QuantailError(f"{folder.results} is damaged: {error!r}.") from error
    return Results(study, tuple(traces), len(folder.jobs))


def _trace(job: Job, rows: Sequence[dict[str, str]]) -> Trace:
    agent = [row for row in rows if row["policy"] == "agent"]
    random = [float(row["mean"]) for row in rows if row["policy"] == "random"]

    def column(name: str) -> Array:
        return np.array([float(row[name]) for row in agent])

    return Trace(
        job=job,
        steps=column("steps"),
        frames=column("frames"),
        means=column("mean"),
        random=random[0] if random else float("nan"),
        protocol=rows[-1]["protocol"],
        episodes=int(rows[-1]["episodes"]),
    )
