"""Write metrics.csv, timing.csv, episodes.csv and evaluations.csv."""

from quantail.runs.folder import RunFolder
from quantail.runs.tables import TABLES, CsvTable
from quantail.stateful import State, require_counts, require_keys
from quantail.training.callbacks import Callback
from quantail.training.progress import Progress


class CsvTables(Callback):
    """The tables of a run. Rows that were written after the restored checkpoint are removed."""

    def __init__(self, folder: RunFolder) -> None:
        self.tables = {name: CsvTable(folder.table(name), columns) for name, columns in TABLES.items()}
        self._restored: dict[str, int] = {}  # rows at the checkpoint, until `on_start`

    def on_start(self, progress: Progress) -> None:
        """Truncate the tables, now that the whole checkpoint has been restored without an error."""
        restored, self._restored = self._restored, {}
        for name, rows in restored.items():
            if not self.tables[name].truncate(rows):
                progress.warn(
                    f"{self.tables[name].path} has lost rows that it had when the checkpoint was "
                    "written; it continues after its last complete row."
                )

    def on_log(self, progress: Progress) -> None:
        self.tables["metrics"].add(progress.metrics)
        self.tables["timing"].add(progress.timing)

    def on_episode_end(self, progress: Progress) -> None:
        episode = progress.episode
        assert episode is not None
        self.tables["episodes"].add(
            {
                "steps": episode.steps,
                "frames": episode.frames,
                "env": episode.env,
                "seed": episode.seed,
                "return": episode.score,
                "length": len(episode.actions),
                "terminated": int(episode.terminated),
            }
        )

    def on_evaluation(self, progress: Progress) -> None:
        evaluation, status = progress.evaluation, progress.status
        assert evaluation is not None
        context = {
            "steps": status.steps,
            "frames": status.frames,
            "policy": "agent" if status.steps else "random",
            "protocol": evaluation.protocol.label,
        }
        self.tables["evaluations"].add(evaluation.to_dict() | context)

    def state_dict(self) -> State:
        """Flush the tables to disk and return their numbers of rows."""
        for table in self.tables.values():
            table.sync()
        return {name: table.rows for name, table in self.tables.items()} | self._restored

    def load_state_dict(self, state: State) -> None:
        require_keys(state, self.tables)
        self._restored = dict(state)

    def check(self) -> None:
        require_counts(self._restored.values())
