"""CSV tables of a run, which are appended row by row and truncated when a checkpoint is restored."""

import csv
import io
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError
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


def complete_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table by column name; none if there is no file.

    A row that is being written, or that lacks cells, is left out.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = io.StringIO(text[: text.rfind("\n") + 1], newline="")
    return [row for row in csv.DictReader(lines) if None not in row.values()]


def last_step(path: Path, columns: tuple[str, ...]) -> int:
    """Return the largest step in a table of a run; raise an error if the file is no such table."""
    content = path.read_bytes() if path.exists() else b""
    *lines, _ = content.split(b"\n")  # what follows the last newline is not a complete row
    firsts = [line.split(b",")[0] for line in lines[1:]]
    header = lines[0].decode(errors="replace").split(",")[: len(columns)] if lines else list(columns)
    if header != list(columns) or not all(map(bytes.isdigit, firsts)):
        raise QuantailError(f"{path} is damaged or is not a table of this run.")
    return max((int(first[:18]) for first in firsts), default=0)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    return str(value)
