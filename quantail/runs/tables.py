"""CSV tables of a run: write them row by row, truncate them for a checkpoint, and read them."""

import csv
import io
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.errors import QuantailError, damage
from quantail.files import no_follow, write_text

METRICS = (
    "steps",
    "frames",
    "updates",
    "episodes",
    "epsilon",
    "loss",
    "value",
    "recent_return",
    "recent_length",
    "replay_steps",
)
TIMING = ("steps", "frames", "seconds", "steps_per_second", "updates_per_second")
EPISODES = ("steps", "frames", "env", "seed", "return", "length", "terminated")
EVALUATIONS = (
    "steps",
    "frames",
    "policy",
    "protocol",
    "risk",
    "epsilon",
    "seed",
    "episodes",
    "mean",
    "value",
    "std",
    "min",
    "q25",
    "median",
    "q75",
    "max",
)

TABLES = {"metrics": METRICS, "timing": TIMING, "episodes": EPISODES, "evaluations": EVALUATIONS}
COUNTS = {
    "steps",
    "frames",
    "updates",
    "episodes",
    "replay_steps",
    "env",
    "seed",
    "length",
    "terminated",
}
TEXTS = {"policy", "protocol", "risk"}
Columns = dict[str, NDArray[Any]]


class CsvTable:
    """One CSV file. A row is written as soon as it is added; in metrics.csv it may bring new columns."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self.path, self.columns = path, columns
        self.widens = columns == METRICS
        content = path.read_bytes() if path.exists() else b""
        first, newline, _ = content.partition(b"\n")
        found = tuple(first.decode(errors="replace").split(","))
        if newline and (found == columns or (self.widens and found[: len(columns)] == columns)):
            self.columns = found
            self.rows = content.count(b"\n") - 1  # cells have no newline
            return
        header = self._header()
        if newline or not header.startswith(content):
            raise QuantailError(
                f"{path} is damaged: its first row is not {','.join(columns)}. Repair that row, or move "
                "the file away to start a new one."
            )
        with open(path, "wb", opener=no_follow) as file:  # a new file, or one with a partial header
            file.write(header)
        self.rows = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row. Cells of columns that it does not have are empty."""
        new = tuple(name for name in row if name not in self.columns)
        if new and self.widens:
            self._widen(new)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([_cell(row.get(column, math.nan)) for column in self.columns])
        with open(self.path, "a", encoding="utf-8", opener=no_follow) as file:
            file.write(text.getvalue())
        self.rows += 1

    def sync(self) -> None:
        """Flush all rows to disk."""
        with self.path.open("r+b") as file:
            os.fsync(file.fileno())

    def truncate(self, rows: int) -> bool:
        """Remove all but the first rows; return whether there were that many.

        If there were not, the file ends after its last complete row, so that the next row is complete
        too.
        """
        content = self.path.read_bytes()
        *lines, _ = content.split(b"\n")  # what follows the last newline is not a complete row
        kept = lines[: rows + 1]
        os.truncate(self.path, sum(len(line) + 1 for line in kept))
        self.rows = len(kept) - 1
        return self.rows == rows

    def _widen(self, new: tuple[str, ...]) -> None:
        """Add columns, which are empty in the rows so far."""
        self.columns = (*self.columns, *new)
        *rows, _ = self.path.read_bytes().split(b"\n")[1:]
        empty = b"," * len(new) + b"\n"
        write_text(self.path, (self._header() + b"".join(row + empty for row in rows)).decode())

    def _header(self) -> bytes:
        return (",".join(self.columns) + "\n").encode()


def read_table(path: Path) -> Columns:
    """Return the columns of a table of a run by name, with the complete rows so far.

    Counts are int64, texts are str, and all other columns are float64, in which an empty cell is NaN.
    The name of the file says which table it is. Without the file, the columns are empty.
    """
    header, rows = _read(path)
    standard, columns = TABLES[path.stem], zip(*rows, strict=True) if rows else [()] * len(header)
    found: Columns = {}
    for name, cells in zip(header, columns, strict=True):
        try:
            if name in TEXTS and name in standard:  # a metric of the user may have the same name
                found[name] = np.array(cells, np.str_)
            elif name in COUNTS and name in standard:
                found[name] = np.array([int(cell) for cell in cells], np.int64)
            else:
                found[name] = np.array([float(cell or "nan") for cell in cells], np.float64)
        except (ValueError, OverflowError) as error:
            raise QuantailError(f"{path} is damaged in column {name}: {damage(error)}.") from error
    return found


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the complete rows of a table of a run, as the texts in the file by column name."""
    header, rows = _read(path)
    return [dict(zip(header, row, strict=True)) for row in rows]


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table; a row that lacks cells is left out."""
    columns = TABLES[path.stem]
    try:
        content = path.read_bytes() if path.exists() else b""
        # What follows the last newline is being written, or was when its process was killed.
        lines = content[: content.rfind(b"\n") + 1].decode()
        header, *rows = csv.reader(io.StringIO(lines, newline="")) if lines else [list(columns)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise QuantailError(f"{path} cannot be read: {damage(error)}.") from error
    started = lines or ",".join(columns).encode().startswith(content)
    if not started or not set(columns) <= set(header):
        raise QuantailError(
            f"{path} is damaged or is not a table of a run: its first row is not {','.join(columns)}."
        )
    if any(len(row) > len(header) for row in rows):
        raise QuantailError(f"{path} is damaged: a row has more cells than the first row.")
    return header, [row for row in rows if len(row) == len(header)]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    return str(value)
