"""Run the jobs of a study as processes on this machine."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from quantail.cluster import cores
from quantail.errors import QuantailError
from quantail.experiments.engines import Event
from quantail.experiments.folder import StudyFolder
from quantail.experiments.job import FAILED, STOPPED
from quantail.text import counted

POLL = 0.1  # seconds
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class LocalEngine:
    """Run several processes in parallel, each with the study's threads, within the number of cores."""

    def __init__(self, threads: int, jobs: int | None = None) -> None:
        most = max(1, cores() // threads)
        if jobs is not None and not 1 <= jobs <= most:
            raise QuantailError(
                f"jobs {jobs} with {counted(threads, 'thread')} each does not fit "
                f"{counted(cores(), 'core')}: it takes 1 to {most}."
            )
        self.threads, self.at_once = threads, jobs or most

    def describe(self) -> str:
        runs, each = counted(self.at_once, "run"), counted(self.threads, "thread")
        return f"local, {runs} in parallel with {each} each, {counted(cores(), 'core')}"

    def run(
        self, folder: StudyFolder, names: Sequence[str], stopping: Callable[[], bool]
    ) -> Iterator[Event | None]:
        waiting, running = list(names), dict[str, subprocess.Popen[bytes]]()
        try:
            while waiting or running:
                if stopping():
                    waiting.clear()
                    for process in running.values():
                        _ask_to_stop(process)
                while waiting and len(running) < self.at_once:
                    name = waiting.pop(0)
                    running[name] = self._start(folder, name)
                    yield Event(name, "started")
                ended = {name: one for name, one in running.items() if one.poll() is not None}
                for name, process in ended.items():
                    del running[name]
                    _ask_to_stop(process)
                    yield _event(folder, name, process.returncode, stopping())
                if not ended:
                    yield None
                    time.sleep(POLL)
        finally:  # interrupted: end the processes immediately
            for process in running.values():
                process.kill()
                process.wait()
                _ask_to_stop(process)

    def close(self) -> None:
        pass

    def _start(self, folder: StudyFolder, name: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "quantail.experiments.job", str(folder.path.resolve()), name]
        words += sorted(folder.trust)
        with folder.log(name).open("wb") as log:
            # In a session of its own, Ctrl-C reaches only the study, which then asks its runs to stop.
            return subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | dict.fromkeys(THREADS, str(self.threads)),
                start_new_session=True,
            )


def _ask_to_stop(process: subprocess.Popen[bytes]) -> None:
    """Close the standard input of the process, upon which it saves and exits."""
    if process.stdin and not process.stdin.closed:
        process.stdin.close()


def _event(folder: StudyFolder, name: str, status: int, stopping: bool) -> Event:
    if status == 0:
        return Event(name, "done")
    if status == STOPPED or stopping:
        return Event(name, "stopped")
    if status == FAILED:
        return Event(name, "failed", folder.failure(name) or f"see {folder.log(name)}")
    if status < 0:
        killer = signal.Signals(-status).name
        guess = ", perhaps because the system ran out of memory" if killer == "SIGKILL" else ""
        return Event(name, "failed", f"its process was ended by {killer}{guess}")
    return Event(name, "failed", f"its process exited with status {status}: see {folder.log(name)}")
