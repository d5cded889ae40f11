"""Write the checkpoints of a run, and remove the files that none of them needs any more."""

from collections.abc import Callable
from pathlib import Path

from quantail.files import sync_folder
from quantail.replay import ReplayJournal
from quantail.runs.checkpoints import Checkpoint, Checkpoints
from quantail.runs.folder import RunFolder
from quantail.training.components import Components
from quantail.training.scores import Scores


class Saver:
    """Saves the components of a run and restores them."""

    def __init__(
        self,
        folder: RunFolder,
        components: Components,
        journal: ReplayJournal,
        scores: Scores,
        warn: Callable[[str], None],
        *,
        keep_all: bool = False,
    ) -> None:
        self.folder, self.components, self.journal, self.scores = folder, components, journal, scores
        self.keep_all = keep_all
        self.checkpoints = Checkpoints(folder.checkpoints)
        self._warn = warn
        self._last = ""  # name of the last checkpoint that was saved or restored
        self._segments: dict[str, set[str]] = {}  # replay files of each resumable checkpoint
        self._undeleted: set[Path] = set()  # old files that the last save could not remove

    def save(self, steps: int) -> Path:
        """Write a checkpoint from which the run can be resumed exactly, and return its folder.

        It lacks the state of a callback that fails, which `components.failed` names.
        """
        states = self.components.states()
        sync_folder(self.folder.path)
        name = self.checkpoints.save(steps, states)
        self.folder.mark_saved()
        if self.scores.best_steps == steps and steps:
            self.checkpoints.mark_best(name)
        self._prune(name)
        return self.folder.checkpoints / name

    def _prune(self, name: str) -> None:
        """Remove all checkpoints but the last two and the best, and segments that are not needed.

        Only the last two checkpoints keep their replay buffer; the best one is only for acting. With
        `keep_all`, all older checkpoints are for acting, and keep their weights alone.
        """
        resumable = {name, self._last}
        self._last = name
        kept = resumable | {f"{self.scores.best_steps:09d}"}
        if self.keep_all:
            # Later ones come from a continuation that was given up for an older checkpoint.
            earlier = {one for one in self.checkpoints.names() if int(one) < int(name)}
            kept |= earlier
            for one in earlier - resumable:
                self.checkpoints.reduce_to_weights(one)
        undeleted = self.checkpoints.prune(kept)
        self._segments[name] = self.journal.files()
        self._segments = {k: v for k, v in self._segments.items() if k in resumable}
        undeleted |= self.journal.prune(set().union(*self._segments.values()))
        for path in sorted(undeleted.keys() - self._undeleted):
            reason = (undeleted[path].strerror or str(undeleted[path])).lower()
            self._warn(
                f"{path} is no longer needed and could not be removed ({reason}): "
                "the run continues, and the next save tries again."
            )
        self._undeleted = set(undeleted)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore all components; if the checkpoint is damaged, one error message says what is wrong."""
        with self.checkpoints.explain_damage(checkpoint.path):
            self.components.restore(checkpoint)
        self.components.require_callbacks()
        self._last = checkpoint.path.name
        self._segments = {self._last: self.journal.files()}
        best = f"{self.scores.best_steps:09d}"
        if best in self.checkpoints.names():
            self.checkpoints.mark_best(best)
        else:
            self.checkpoints.clear_best()
            self.scores.clear_best()
