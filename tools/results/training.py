"""What the folder of a run says about it: how far it is, how long it took, its curve."""

import time
from pathlib import Path

from quantail.errors import QuantailError
from quantail.files import is_held
from quantail.runs.checkpoints import Checkpoint, Checkpoints
from quantail.runs.folder import LOCK, RunFolder
from quantail.runs.tables import read_rows
from tools.results.plan import Spec, Study
from tools.results.table import Curve, CurveRow

PATIENCE = 60.0  # seconds for a killed process to release a run
MARGIN = 60.0  # seconds: less time than this is not worth another session


def last_checkpoint(folder: Path) -> Checkpoint | None:
    """Return the last checkpoint of a run; None if there is none that can be read."""
    try:
        return Checkpoints(RunFolder(folder).checkpoints).described("last")
    except QuantailError:
        return None


def seconds_so_far(folder: Path) -> float:
    """Return how long a run has taken up to its last checkpoint, with its evaluations."""
    found = last_checkpoint(folder)
    return sum(found.seconds.values()) if found else 0.0


def is_over(study: Study, spec: Spec, folder: Path) -> bool:
    """Return whether a run has all its steps and evaluations, or has used up its time."""
    found = last_checkpoint(folder)
    if found is None:
        return False
    rows = read_rows(folder / "evaluations.csv")
    complete = found.is_complete(spec.steps) and bool(rows) and int(rows[-1]["steps"]) >= spec.steps
    return complete or bool(study.hours and seconds_so_far(folder) > study.hours * 3600 - MARGIN)


def curve(spec: Spec, folder: Path, trained: int) -> Curve:
    """Return the evaluations of a run up to the step of its last weights."""
    return [
        CurveRow(
            id=spec.id,
            steps=int(row["steps"]),
            policy=row["policy"],
            episodes=int(row["episodes"]),
            mean=float(row["mean"]),
            std=round(float(row["std"]), 6),
        )
        for row in read_rows(folder / "evaluations.csv")
        if int(row["steps"]) <= trained
    ]


def wait_for(folder: Path) -> None:
    """Wait until no process trains in a folder: one that was killed may still be ending."""
    deadline = time.monotonic() + PATIENCE
    while is_held(folder / LOCK):
        if time.monotonic() > deadline:
            raise QuantailError(f"{folder} is being trained by a process that the queue did not start.")
        time.sleep(0.2)
