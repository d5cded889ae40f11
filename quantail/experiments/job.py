"""Run one job of a study in its own process: start it, or resume it from its checkpoint."""

import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from quantail.errors import QuantailError
from quantail.experiments.folder import StudyFolder
from quantail.runs.folder import RunFolder
from quantail.training.allocator import keep_large_blocks
from quantail.training.callbacks import Callback
from quantail.training.progress import Progress
from quantail.trust import Trust, add_working_folder

STOPPED = 3  # exit status of a run that stopped on request and saved
FAILED = 1
PATIENCE = 120.0  # seconds to wait for a killed process to release the lock of the run


class _JobLog(Callback):
    """Print to the log of the run, and remember whether it has ended or was stopped, and is saved."""

    def __init__(self) -> None:
        self.ended = False

    def on_start(self, progress: Progress) -> None:
        for name, text in progress.description.items():
            print(f"{name:<12}{text}", file=sys.stderr, flush=True)

    def on_warning(self, progress: Progress) -> None:
        print(f"warning: {progress.warning}", file=sys.stderr, flush=True)

    def on_end(self, progress: Progress) -> None:
        self.ended = True


def run_job(path: str | Path, name: str, trust: Trust = ()) -> str:
    """Train one run to its end; return "done", "stopped", or "failed: " with the reason.

    The reason of a failure is saved in the study. `trust` lists the modules that may be imported
    where the study names them.
    """
    folder = StudyFolder(path, trust)
    log = _JobLog()
    try:
        _require_shared(folder)
        folder.job(name)
        if folder.is_done(name):
            return "done"
        _train(folder, name, log)
    except KeyboardInterrupt:
        return "stopped"
    except SystemExit as error:
        if log.ended or hasattr(error, "ray_terminate_msg"):  # by a signal, here or through Ray
            return "stopped"
        traceback.print_exc()
        return _failed(folder, name, f"something in it ended its process: SystemExit: {error.code}")
    except QuantailError as error:
        return _failed(folder, name, str(error))
    except Exception as error:
        traceback.print_exc()
        return _failed(folder, name, f"{type(error).__name__}: {error}")
    folder.forget_failure(name)
    return "done"


def _train(folder: StudyFolder, name: str, log: Callback) -> None:
    from quantail.training.train import resume, train

    job, run = folder.job(name), folder.run(name)
    _wait_for(run)
    if (run.path / "run.json").exists():
        resume(run.path, callbacks=[log], trust=folder.trust)
        return
    # `folder.job` refuses modules that study.json names and the user does not trust.
    train(
        job.env,
        preset=job.preset,
        out=run.path,
        callbacks=[log],
        trust=folder.trust,
        **job.changes,
    )


def _require_shared(folder: StudyFolder) -> None:
    if not folder.path.exists():
        raise QuantailError(
            f"{folder.path} is not on this machine: with several machines, the study must be "
            "on a shared file system."
        )


def _wait_for(run: RunFolder) -> None:
    """Wait until no process holds this run; one that was killed may still be exiting."""
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
    """Save and stop when standard input closes, which happens when the study ends or is killed."""

    def watch() -> None:
        while os.read(0, 1):  # unbuffered: a buffered read would still hold its lock when Python exits
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def main(words: list[str]) -> int:
    """`python -m quantail.experiments.job STUDY NAME [MODULE ...]`, with a pipe as standard input.

    MODULE names a module that the user trusts.
    """
    _stop_with_the_parent()
    keep_large_blocks()
    study, name, *trust = words
    if trust:
        add_working_folder()
    outcome = run_job(study, name, trust)
    return {"done": 0, "stopped": STOPPED}.get(outcome, FAILED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
