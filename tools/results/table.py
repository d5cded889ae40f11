"""The tables results/runs.csv and results/curves.csv, and the records of finished runs behind them.

A finished run is first written as one JSON file among the queue's records, which git does not track.
Then its rows go into the tables: those of the curve first, that of the run last. What a kill or a
branch switch takes from the tables is added again from the records, and no run has more than one row.
"""

import csv
import io
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError, damage
from quantail.files import hold, read_json, write_json, write_text
from tools.results.plan import Spec, parse_settings

WAIT = 60.0  # seconds for another process to finish writing


@dataclass(frozen=True)
class RunRow:
    """A finished run: a row of runs.csv."""

    id: str
    study: str
    game: str
    agent: str
    preset: str
    seed: int
    steps: int  # planned
    trained: int  # steps, fewer than planned if time was up
    settings: str  # that differ from the preset
    protocol: str  # of the game and of the final evaluation
    commit: str
    kernels: str  # the compute path: numba or torch
    torch: str  # version
    processor: str
    seconds: float  # of training and of its evaluations
    fingerprint: str  # of this agent, preset and game at this commit
    mean: float  # return in the final evaluation, with the last weights
    std: float  # of the returns of episodes
    episodes: int
    date: str  # of the end of the run

    @property
    def spec(self) -> Spec:
        """The run that was planned."""
        settings = parse_settings(self.settings)
        return Spec(self.game, self.agent, self.preset, self.seed, self.steps, self.episodes, settings)


@dataclass(frozen=True)
class CurveRow:
    """An evaluation in training: a row of curves.csv."""

    id: str
    steps: int
    policy: str  # agent, or random before training
    episodes: int
    mean: float
    std: float


Curve = list[CurveRow]


class Tables:
    """The two tables in a folder, and the records of one queue."""

    def __init__(self, folder: Path, records: Path) -> None:
        self.runs, self.curves, self.records = folder / "runs.csv", folder / "curves.csv", records
        self.lock = records.parent.parent / ".results.lock"  # all queues of a clone share it

    def read(self) -> tuple[dict[str, RunRow], dict[str, Curve]]:
        """Return the finished runs and their curves, by the ids of the runs."""
        runs: dict[str, RunRow] = {}
        for number, row in enumerate(_read(self.runs, RunRow), start=2):
            _check_id(self.runs, number, row)
            if row.id not in runs or runs[row.id].date < row.date:  # a merge may bring a row twice
                runs[row.id] = row
        curves: dict[str, Curve] = {name: [] for name in runs}
        for point in dict.fromkeys(_read(self.curves, CurveRow)):
            if point.id in curves:
                curves[point.id].append(point)
        return runs, curves

    def record(self, row: RunRow, curve: Curve) -> None:
        """Add a finished run, or replace the row that it has."""
        self.records.mkdir(parents=True, exist_ok=True)
        content = {"run": asdict(row), "curve": [asdict(point) for point in curve]}
        write_json(self.records / f"{row.id}.json", content)
        self.restore()

    def restore(self) -> None:
        """Add what the records have and the tables have not, or have from an older run."""
        with self._held():
            runs, curves = self.read()
            for path in sorted(self.records.glob("*.json")):
                row, curve = _record(path)
                if row.id in runs and runs[row.id].date < row.date:
                    del runs[row.id]  # so that the row that replaces it comes last, as a new one does
                if row.id not in runs or runs[row.id].date == row.date:
                    runs[row.id], curves[row.id] = row, curve
            _write(self.curves, CurveRow, (point for name in runs for point in curves[name]))
            _write(self.runs, RunRow, runs.values())

    @contextmanager
    def _held(self) -> Iterator[None]:
        self.records.mkdir(parents=True, exist_ok=True)
        with hold(self.lock, f"{self.runs} is being written", until=time.monotonic() + WAIT):
            yield


def _record(path: Path) -> tuple[RunRow, Curve]:
    content = read_json(path)
    try:
        return RunRow(**content["run"]), [CurveRow(**point) for point in content["curve"]]
    except (KeyError, TypeError) as error:
        raise QuantailError(f"{path} is damaged: {damage(error)}. Move it away.") from error


def _write(path: Path, kind: type, rows: Iterable[Any]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_columns(kind))
    writer.writerows(asdict(row).values() for row in rows)
    if not path.exists() or path.read_text(encoding="utf-8") != text.getvalue():
        write_text(path, text.getvalue())


def _read(path: Path, kind: type) -> Iterator[Any]:
    """Yield the rows of a table; raise an error that names the damaged line."""
    if not path.exists():
        return
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise QuantailError(f"{path} cannot be read: {damage(error)}.") from error
    lines = list(csv.reader(io.StringIO(text, newline="")))
    if not lines or lines[0] != _columns(kind):
        raise QuantailError(
            f"{path} is not a table of the results queue: its first line is not "
            f"{','.join(_columns(kind))}. Nothing was changed: move the file away."
        )
    if not text.endswith("\n"):
        raise _damaged(path, len(lines), "it is cut off")
    for number, cells in enumerate(lines[1:], start=2):
        try:
            yield _parse(kind, dict(zip(_columns(kind), cells, strict=True)))
        except ValueError as error:
            reason = f"it has {len(cells)} cells instead of {len(_columns(kind))}"
            same = len(cells) == len(_columns(kind))
            raise _damaged(path, number, damage(error) if same else reason) from error


def _parse(kind: type, cells: Mapping[str, str]) -> Any:
    return kind(**{field.name: field.type(cells[field.name]) for field in fields(kind)})


def _check_id(path: Path, number: int, row: RunRow) -> None:
    try:
        expected = row.spec.id
    except ValueError as error:
        raise _damaged(path, number, str(error)) from error
    if row.id != expected:
        raise _damaged(path, number, f"its id is {row.id}, and {expected} follows from its content")


def _damaged(path: Path, number: int, reason: str) -> QuantailError:
    return QuantailError(
        f"{path} is damaged in line {number}: {reason}. Nothing was changed: repair or remove that line."
    )


def _columns(kind: type) -> list[str]:
    return [field.name for field in fields(kind)]
