"""Run the jobs of a study on an engine, report progress to a view, and collect the results."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quantail.experiments.engines import Engine, Event, make_engine
from quantail.experiments.folder import StudyFolder
from quantail.experiments.results import write_results
from quantail.experiments.study import Job, Study
from quantail.training.signals import StopSignals
from quantail.trust import Trust, trusted_modules


class View:
    """A view of a running study that shows nothing. Override the methods you need."""

    def on_start(self, folder: StudyFolder, engine: Engine, jobs: list[Job]) -> None:
        """Called before the first run; `jobs` are the remaining ones."""

    def on_event(self, event: Event) -> None:
        """Called when a run started or ended."""

    def on_tick(self) -> None:
        """Called several times per second."""

    def on_stop(self) -> None:
        """Called once when a stop is requested, while the runs save."""

    def close(self) -> None:
        """Release the terminal; always called at the end."""


@dataclass(frozen=True)
class StudyOutcome:
    """The outcome of running a study: finished and failed runs, and the signal that stopped it."""

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
) -> StudyOutcome | None:
    """Run the remaining runs of a study.

    Failed runs are tried again, from their checkpoint if they have one.

    Args:
        study: The study; None continues the one that is stored in `out`.
        out: The folder of the study.
        engine: Where to run: "local" or "ray".
        jobs: Number of runs at a time.
        address: Address of a Ray cluster.
        gpus: Number of GPUs for each run with device cuda.
        view: What shows the progress.
        confirm: Called before anything starts; if it returns False, nothing does, and the result is
            None.
        trust: Modules that may be imported where the study names them, besides those with which `study`
            was read.
    """
    modules = trusted_modules(trust)
    if study is not None:  # without an origin it was made in Python, by the user
        modules |= study.modules() if study.origin is None else study.origin.trusted
        study = study.trusting(modules)
    folder = StudyFolder(out, modules)
    (study or folder.read()).check()  # before a file is written
    if study is not None:
        folder.make()
    view = view or View()
    with folder.held():
        if study is not None:
            folder.open(study)  # under the lock: another process may be running this study
        # All combinations with the first seed come before further seeds.
        everything = sorted(folder.jobs.values(), key=lambda job: job.seed)
        left = [job for job in everything if not folder.is_done(job.name)]
        if not left:
            write_results(folder)
            return StudyOutcome(folder, len(everything), len(everything), {}, "")
        where = make_engine(
            engine,
            threads=max(job.config.run.threads for job in everything),
            gpus=gpus if any(job.config.run.device == "cuda" for job in everything) else 0.0,
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
    return StudyOutcome(folder, done, len(everything), failed, stopped_by)


def _run(folder: StudyFolder, engine: Engine, left: list[Job], view: View) -> str:
    """Run jobs and return the name of the signal that stopped them, or an empty string."""
    for job in left:
        folder.forget_failure(job.name)
    view.on_start(folder, engine, left)
    stop_shown = False
    with StopSignals() as signals:
        names = [job.name for job in left]
        for event in engine.run(folder, names, lambda: bool(signals.name)):
            if event is not None:
                if event.what == "failed":
                    folder.note_failure(event.name, event.reason)
                view.on_event(event)
            if signals.name and not stop_shown:
                stop_shown = True
                view.on_stop()
            view.on_tick()
    return signals.name
