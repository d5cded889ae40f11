"""Processes that end together with the process that started them, however it ends."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
PATIENCE = 120.0  # seconds that a child has for saving before it is killed


def dies_with_parent() -> Callable[[], None] | None:
    """Return a `preexec_fn` for subprocess: the kernel kills the child when this process is gone.

    Linux alone offers that. Elsewhere the function is None, and a child outlives a parent that is
    killed with SIGKILL. Linux may also share the processor between sessions first, where the child's
    own session would have the usual priority: it is given this process's.
    """
    if _LIBC is None:
        return None
    libc, parent, niceness = _LIBC, os.getpid(), str(os.nice(0)).encode()

    def ask() -> None:
        with suppress(OSError):  # without autogroups
            group = os.open("/proc/self/autogroup", os.O_WRONLY)
            os.write(group, niceness)
            os.close(group)
        libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it was killed before the kernel was asked
            os._exit(1)

    return ask


class StoppedError(Exception):
    """A child was ended because its parent is stopping."""


class Children:
    """The processes that are running now. Threads may start them; any thread may stop them all."""

    def __init__(self) -> None:
        self.stopping = False
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()

    def run(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: Path,
        seconds: float | None = None,
    ) -> tuple[int, str]:
        """Run a command to its end; return its exit code and what it printed.

        Its errors are appended to the file `log`. After `seconds` it is asked to stop with SIGTERM.
        Raise `StoppedError` if `stop` was called.
        """
        with log.open("ab") as errors:
            with self._lock:
                if self.stopping:
                    raise StoppedError
                child = subprocess.Popen(
                    command,
                    cwd=cwd,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    start_new_session=True,  # Ctrl-C reaches this process alone, which then asks once
                    preexec_fn=dies_with_parent(),
                )
                self._running.add(child)
            try:
                printed = _output(child, seconds)
            except BaseException:  # a signal, in the main thread
                _end([child])
                raise
            finally:
                with self._lock:
                    self._running.discard(child)
        if self.stopping:
            raise StoppedError
        return child.returncode, printed

    def stop(self) -> None:
        """Ask all children to save and end, start no more, and wait for them."""
        with self._lock:
            self.stopping = True
            running = list(self._running)
        _end(running)


def _end(children: "list[subprocess.Popen[str]]") -> None:
    """Ask processes to save and end, and wait for them."""
    for child in children:
        child.terminate()
    for child in children:
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()


def _output(child: "subprocess.Popen[str]", seconds: float | None) -> str:
    try:
        return child.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        child.terminate()
        return child.communicate()[0]
