"""Tell a run that was killed before its first save from one whose checkpoints are missing."""

from quantail.errors import QuantailError
from quantail.replay.journal import newest_place
from quantail.settings import Settings
from quantail.training.checkpoints import Checkpoints
from quantail.training.gathering import CHUNK
from quantail.training.run_folder import RunFolder
from quantail.training.tables import TABLES, last_step


def require_never_saved(folder: RunFolder, settings: Settings) -> None:
    """Refuse to begin again in a folder whose checkpoints are missing.

    A run saves for the first time when a checkpoint or an evaluation is due. A run that was killed
    before then has written no row beyond that step. Where the tables or the replay go further, or where
    results were scored, there was a checkpoint. Segments of the replay may be there in either case: they
    are written before the checkpoint that names them.
    """
    due = min(settings.checkpoint_every, settings.evaluation_every)
    due += settings.envs * (CHUNK if settings.engine == "ray" else 1)  # steps come in such portions
    steps = max(last_step(folder.table(name), columns) for name, columns in TABLES.items())
    signs = {
        f"its tables go to step {steps:,}": steps >= due,
        # A step takes one place of the replay, or two where an episode is truncated.
        "its replay/ holds more than a first save writes": newest_place(folder.replay) >= 2 * due,
        "its results/ were scored with one": folder.results.is_dir() and any(folder.results.iterdir()),
        "its checkpoints/ names one": Checkpoints(folder.checkpoints).has_saved(),
    }
    for sign, seen in signs.items():
        if seen:
            raise QuantailError(
                f"{folder.path} has no checkpoint to go on from, though {sign}: bring its checkpoints/ "
                "back, or train anew in another folder."
            )
