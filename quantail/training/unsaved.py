"""Distinguish a run that was killed before its first save from one whose checkpoints are missing."""

from quantail.collecting.collector import CHUNK
from quantail.config import Config
from quantail.errors import QuantailError
from quantail.replay.journal import newest_step
from quantail.runs.checkpoints import Checkpoints
from quantail.runs.folder import RunFolder
from quantail.runs.tables import TABLES, read_table


def require_never_saved(folder: RunFolder, config: Config) -> None:
    """Raise an error if the run has saved before, so that its checkpoints are missing.

    A file next to checkpoints/ says that a run has saved. The other signs are for a folder that has lost
    that file too: a run saves for the first time when a checkpoint or an evaluation is due, and one that
    was killed before then has written no row beyond that step. If its tables or its replay segments go
    further, or if it has results, there was a checkpoint. Some replay segments may exist in either case,
    because they are written before the checkpoint that lists them.
    """
    due = min(config.run.checkpoint_every, config.evaluation.evaluation_every)
    due += config.run.num_envs * (CHUNK if config.run.engine == "ray" else 1)  # steps arrive in chunks
    steps = max(int(read_table(folder.table(name))["steps"].max(initial=0)) for name in TABLES)
    signs = {
        "it has saved before": folder.has_saved(),
        f"its tables go to step {steps:,}": steps >= due,
        # A truncated episode adds its final frame as a second step of the replay buffer.
        "its replay/ holds more than a first save writes": newest_step(folder.replay) >= 2 * due,
        "its results/ is not empty": folder.results.is_dir() and any(folder.results.iterdir()),
        "its checkpoints/ refers to one": Checkpoints(folder.checkpoints).has_saved(),
    }
    for sign, seen in signs.items():
        if seen:
            raise QuantailError(
                f"{folder.path} has no checkpoint to resume from, although {sign}: restore its "
                "checkpoints/ folder, or start a new run in another folder."
            )
