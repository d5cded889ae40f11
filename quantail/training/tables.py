"""Plain CSV tables that grow by a row and can be cut back to where a checkpoint left them."""

import csv
import io
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError

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


class Table:
    """One CSV file. A row is on disk as soon as it is added."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self.path = path
        if not path.exists() or path.stat().st_size == 0:
            path.write_text(",".join(columns) + "\n", encoding="utf-8")
        with path.open(encoding="utf-8") as file:
            self.columns = next(csv.reader(file))  # an older run goes on with the columns that it has

    def add(self, row: Mapping[str, Any]) -> None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([_cell(row[column]) for column in self.columns])
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text.getvalue())

    def size(self) -> int:
        """Bytes so far."""
        return self.path.stat().st_size

    def cut(self, size: int) -> bool:
        """Drop the rows that came after the file had this size; whether it had so many."""
        if self.size() < size:
            return False
        os.truncate(self.path, size)
        return True


def last_step(path: Path, columns: tuple[str, ...]) -> int:
    """Return the largest step in a table of a run; refuse a file that is not such a table."""
    content = path.read_bytes() if path.exists() else b""
    *lines, _ = content.split(b"\n")  # what follows the last newline is no whole row
    firsts = [line.split(b",")[0] for line in lines[1:]]
    if lines[:1] not in ([], [",".join(columns).encode()]) or not all(map(bytes.isdigit, firsts)):
        raise QuantailError(f"{path} is damaged or is not a table of this run.")
    return max((int(first[:18]) for first in firsts), default=0)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    return str(value)
