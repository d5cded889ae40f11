"""CSV tables of a run, which are appended row by row and truncated when a checkpoint is restored."""

import csv
import io
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError
from quantail.files import no_follow

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
    """One CSV file. A row is written as soon as it is added."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self.path, self.columns = path, columns
        self.header = header = (",".join(columns) + "\n").encode()
        content = b""
        if path.exists():
            with path.open("rb") as file:
                content = file.read(len(header))
        if content == header:
            return
        if not header.startswith(content):
            raise QuantailError(
                f"{path} is damaged: its first row is not {','.join(columns)}. Repair that row, or move "
                "the file away to start a new one."
            )
        with open(path, "wb", opener=no_follow) as file:  # a new file, or one with a partial header
            file.write(header)

    def add(self, row: Mapping[str, Any]) -> None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([_cell(row[column]) for column in self.columns])
        with open(self.path, "a", encoding="utf-8", opener=no_follow) as file:
            file.write(text.getvalue())

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self.path.stat().st_size

    def sync(self) -> None:
        """Flush all rows to disk."""
        with self.path.open("r+b") as file:
            os.fsync(file.fileno())

    def truncate(self, size: int) -> bool:
        """Truncate the file to this size in bytes; return whether it had all the rows up to there.

        If it had not, the file ends after its last complete row, so that the next row is complete too.
        """
        with self.path.open("rb") as file:
            content = file.read(size)
        complete = max(content.rfind(b"\n") + 1, len(self.header))
        os.truncate(self.path, complete)
        return complete == size


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
    if lines[:1] not in ([], [",".join(columns).encode()]) or not all(map(bytes.isdigit, firsts)):
        raise QuantailError(f"{path} is damaged or is not a table of this run.")
    return max((int(first[:18]) for first in firsts), default=0)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    return str(value)
