"""Read a run as plain arrays, for your own figures and statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quantail.errors import QuantailError
from quantail.extras import require_extra
from quantail.runs.folder import RunFolder
from quantail.runs.tables import TABLES, Columns, read_table
from quantail.validation import one_of

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Run:
    """A run as it was on disk when it was read. Each table is a dictionary of columns by name.

    Attributes:
        path: The folder of the run.
        settings: The settings by name.
        about: The content of run.json.
        metrics: The table metrics.csv: losses, ε and further metrics.
        timing: The table timing.csv: where the time went.
        episodes: The table episodes.csv: a row for each episode of training.
        evaluations: The table evaluations.csv: a row for each evaluation in training.
    """

    path: Path
    settings: dict[str, Any] = field(repr=False)
    about: dict[str, Any] = field(repr=False)  # the content of run.json
    metrics: Columns = field(repr=False)
    timing: Columns = field(repr=False)
    episodes: Columns = field(repr=False)
    evaluations: Columns = field(repr=False)

    def frame(self, table: str) -> pandas.DataFrame:
        """Return the table of this name as a pandas DataFrame."""
        one_of("table", table, TABLES)
        require_extra("stats", "Run.frame", only="pandas")
        import pandas

        return pandas.DataFrame(getattr(self, table))


def read_run(path: str | Path) -> Run:
    """Read the settings and the tables of a run, which may be in progress or may have been killed.

        run = quantail.read_run("runs/demo")
        run.evaluations["steps"], run.evaluations["mean"]

    Args:
        path: The folder of the run.
    """
    folder = RunFolder(path)
    about = folder.about()
    if not isinstance(about.get("settings"), dict):
        raise QuantailError(f"{folder.path / 'run.json'} is damaged: it lacks settings.")
    tables = {name: read_table(folder.table(name)) for name in TABLES}
    return Run(path=folder.path, settings=about["settings"], about=about, **tables)
