"""Running a study: the same jobs on any engine, what happens told to a view, results in one folder."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quantail.experiments.engines import Engine, Event, make_engine
from quantail.experiments.folder import StudyFolder
from quantail.experiments.results import write_results
from quantail.experiments.study import Job, Study
from quantail.registry import Trust, trusted_modules
from quantail.training.signals import StopSignals


class View:
    """Shows nothing. Others override what they want to show."""

    def started(self, folder: StudyFolder, engine: Engine, jobs: list[Job]) -> None:
        """Before the first run; `jobs` are those that are left."""

    def happened(self, event: Event) -> None:
        """A run began or ended."""

    def passed(self) -> None:
        """Some time passed."""

    def stopping(self) -> None:
        """Someone asked to stop; runs are saving."""

    def close(self) -> None:
        """Whatever happened: give the terminal back."""


@dataclass(frozen=True)
class Outcome:
    """What a session of a study came to."""

    folder: StudyFolder
    done: int
    total: int
    failed: dict[str, str]
    stopped_by: str  # the signal, or empty


def run_study(
    study: Study | None,
    out: str | Path,
    *,
    engine: str = "local",
    jobs: int | None = None,
    address: str | None = None,
    gpus: float = 1.0,
    view: View | None = None,
    confirm: Callable[[StudyFolder, Engine, list[Job]], bool] | None = None,
    trust: Trust = (),
) -> Outcome | None:
    """Run what is left of a study in the folder `out`; without a study, of the one that is in it.

    What failed before is tried again, from its checkpoint if it has one. `gpus` counts for runs with
    device cuda alone. `confirm` is asked before anything starts; a no gives None. `trust` are the
    modules that may be imported where the study names them, beside those that `study` was read with.
    """
    modules = trusted_modules(trust)
    if study is not None:  # without a file, it was made in Python, and its names are the user's
        modules |= study.modules() if study.origin is None else study.origin.trusted
        study = study.trusting(modules)
    folder = StudyFolder(out, modules)
    (study or folder.read()).check()  # before a file is written
    if study is not None:
        folder.make()
    view = view or View()
    with folder.held():
        if study is not None:
            folder.open(study)  # held: another process may be running what is in it
        # A whole grid before more seeds.
        everything = sorted(folder.jobs.values(), key=lambda job: job.seed)
        left = [job for job in everything if not folder.is_done(job.name)]
        if not left:
            write_results(folder)
            return Outcome(folder, len(everything), len(everything), {}, "")
        where = make_engine(
            engine,
            threads=max(job.settings.threads for job in everything),
            gpus=gpus if any(job.settings.device == "cuda" for job in everything) else 0.0,
            jobs=jobs,
            address=address,
        )
        try:
            if confirm and not confirm(folder, where, left):
                return None
            stopped_by = _run(folder, where, left, view)
        finally:
            view.close()
            where.close()
        write_results(folder)
    failed = {job.name: reason for job in left if (reason := folder.failure(job.name))}
    done = sum(folder.is_done(job.name) for job in everything)
    return Outcome(folder, done, len(everything), failed, stopped_by)


def _run(folder: StudyFolder, engine: Engine, left: list[Job], view: View) -> str:
    """The signal that ended it, or nothing."""
    for job in left:
        folder.forget_failure(job.name)
    view.started(folder, engine, left)
    told = False
    with StopSignals() as signals:
        names = [job.name for job in left]
        for event in engine.run(folder, names, lambda: bool(signals.name)):
            if event is not None:
                if event.what == "failed":
                    folder.note_failure(event.name, event.reason)
                view.happened(event)
            if signals.name and not told:
                told = True
                view.stopping()
            view.passed()
    return signals.name
