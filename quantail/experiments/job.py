"""One run of a study, in a process of its own: begun, or gone on with where it stands."""

import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from quantail.errors import QuantailError
from quantail.experiments.folder import StudyFolder
from quantail.registry import Trust, add_working_folder
from quantail.training.reporter import Reporter, Summary
from quantail.training.run_folder import RunFolder

STOPPED = 3  # exit status of a run that was asked to stop and saved
FAILED = 1
PATIENCE = 120.0  # seconds until a process that trained this run and was killed must have let go


class _Ending(Reporter):
    """Notes whether the run was stopped, and prints warnings into its log."""

    def __init__(self) -> None:
        self.stopped = False

    def opening(self, lines: dict[str, str]) -> None:
        for name, text in lines.items():
            print(f"{name:<12}{text}", file=sys.stderr, flush=True)

    def warned(self, sentence: str) -> None:
        print(f"warning: {sentence}", file=sys.stderr, flush=True)

    def finished(self, summary: Summary) -> None:
        self.stopped = bool(summary.stopped_by)


def run_job(path: str | Path, name: str, trust: Trust = ()) -> str:
    """Train one run to its end: "done", "stopped", or "failed" with the reason kept in the study.

    `trust` are the modules that may be imported where the study names them.
    """
    folder = StudyFolder(path, trust)
    ending = _Ending()
    try:
        _require_shared(folder)
        folder.job(name)
        if folder.is_done(name):
            return "done"
        _train(folder, name, ending)
    except KeyboardInterrupt:
        return "stopped"
    except SystemExit as error:
        if ending.stopped or hasattr(error, "ray_terminate_msg"):  # by a signal, here or through Ray
            return "stopped"
        traceback.print_exc()
        return _failed(folder, name, f"something in it ended its process: SystemExit: {error.code}")
    except QuantailError as error:
        return _failed(folder, name, str(error))
    except Exception as error:
        traceback.print_exc()
        return _failed(folder, name, f"{type(error).__name__}: {error}")
    if ending.stopped:
        return "stopped"
    folder.forget_failure(name)
    return "done"


def _train(folder: StudyFolder, name: str, reporter: Reporter) -> None:
    from quantail.training.train import resume, train

    job, run = folder.job(name), folder.run(name)
    _wait_for(run)
    if (run.path / "run.json").exists():
        resume(run.path, reporter=reporter, trust=folder.trust)
        return
    # `folder.job` has refused what study.json names and the user does not trust.
    train(
        job.env,
        preset=job.preset,
        out=run.path,
        reporter=reporter,
        trust=folder.trust,
        **job.changes,
    )


def _require_shared(folder: StudyFolder) -> None:
    if not folder.path.exists():
        raise QuantailError(
            f"{folder.path} is not on this machine: with several machines the study's folder must be "
            "on a file system that all of them share."
        )


def _wait_for(run: RunFolder) -> None:
    """Until nobody trains in this folder: one who was killed, or lost, may still be letting go."""
    if not (run.path / "run.json").exists():
        return
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with run.held():
                return
        except QuantailError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _failed(folder: StudyFolder, name: str, reason: str) -> str:
    print(reason, file=sys.stderr, flush=True)
    if folder.path.exists():
        folder.note_failure(name, reason)
    return f"failed: {reason}"


def _stop_with_the_parent() -> None:
    """When the study ends, or is killed, our standard input closes: save and stop."""

    def watch() -> None:
        while os.read(0, 1):  # raw: a buffered read would still hold its lock when Python ends
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def main(words: list[str]) -> int:
    """`python -m quantail.experiments.job STUDY NAME [MODULE ...]`, with a pipe as standard input.

    The modules are those that the user trusts.
    """
    _stop_with_the_parent()
    study, name, *trust = words
    if trust:
        add_working_folder()
    outcome = run_job(study, name, trust)
    return {"done": 0, "stopped": STOPPED}.get(outcome, FAILED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
