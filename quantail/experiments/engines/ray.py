"""Runs as tasks on a Ray cluster. A run whose worker dies goes on from its own checkpoint."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from quantail.cluster import connect
from quantail.errors import QuantailError
from quantail.experiments.engines import Event
from quantail.experiments.folder import StudyFolder
from quantail.experiments.job import run_job
from quantail.training.progress import counted

RETRIES = 5  # deaths of a worker that one run survives
POLL = 0.2  # seconds


class RayEngine:
    """As many runs at once as fit into the cluster, each with its threads and its share of a GPU."""

    def __init__(self, threads: int, gpus: float, address: str) -> None:
        self.ray = connect(address)
        self.threads, self.gpus, self.address = threads, gpus, address
        there = self.ray.cluster_resources()
        fits = [there.get("CPU", 0.0) / threads] + ([there.get("GPU", 0.0) / gpus] if gpus else [])
        self.at_once = int(min(fits))
        if self.at_once < 1:
            self.close()
            raise QuantailError(
                f"a run needs {_needs(threads, gpus)}, and the Ray cluster at {address} has "
                f"{there.get('CPU', 0):g} CPU and {there.get('GPU', 0):g} GPU."
            )

    def describe(self) -> str:
        nodes = sum(1 for node in self.ray.nodes() if node["Alive"])
        where = f"Ray {self.ray.__version__} at {self.address}, {counted(nodes, 'node')}"
        needs = _needs(self.threads, self.gpus)
        return f"{where}, {counted(self.at_once, 'run')} at once with {needs} each"

    def run(
        self, folder: StudyFolder, names: Sequence[str], stopping: Callable[[], bool]
    ) -> Iterator[Event | None]:
        ray = self.ray
        # max_calls 1: a fresh worker for each run, as the local engine has a fresh process.
        needs = {"num_cpus": self.threads, "num_gpus": self.gpus}
        task = ray.remote(max_retries=RETRIES, max_calls=1, **needs)(_task)
        # With trust, the user's own modules are found on a worker wherever they are found here.
        places = [os.path.abspath(one) for one in sys.path] if folder.trust else []
        given = (str(folder.path.resolve()), sorted(folder.trust), places)
        for name in names:
            folder.log(name).unlink(missing_ok=True)  # there again as soon as the run begins
        refs: dict[Any, str] = {task.remote(name, *given): name for name in names}
        begun: set[str] = set()
        asked = False
        try:
            while refs:
                if stopping() and not asked:
                    asked = True
                    for ref in refs:
                        ray.cancel(ref)  # as a Ctrl-C in the worker, which saves and ends
                finished, _ = ray.wait(list(refs), num_returns=1, timeout=POLL)
                for name in refs.values():
                    if name not in begun and folder.log(name).exists():
                        begun.add(name)
                        yield Event(name, "started")
                for ref in finished:
                    event = _event(ray, ref, refs.pop(ref))
                    if event.what == "stopped" and not stopping():  # its machine was asked to go
                        refs[task.remote(event.name, *given)] = event.name
                    else:
                        yield event
                if not finished:
                    yield None
        finally:  # interrupted at once
            for ref in refs:
                ray.cancel(ref, force=True)

    def close(self) -> None:
        self.ray.shutdown()


def _task(name: str, path: str, trust: list[str], places: list[str]) -> str:
    """Run one job on a worker; modules are looked for in `places` too, behind what is installed."""
    sys.path += [one for one in places if one not in sys.path]
    folder = StudyFolder(path)
    if not folder.path.exists():
        return run_job(path, name, trust)
    with folder.log(name).open("a", encoding="utf-8") as log, contextlib.redirect_stderr(log):
        return run_job(path, name, trust)


def _event(ray: Any, ref: Any, name: str) -> Event:
    try:
        outcome: str = ray.get(ref)
    except (ray.exceptions.TaskCancelledError, KeyboardInterrupt):
        return Event(name, "stopped")
    except ray.exceptions.RayError as error:
        if isinstance(error, ray.exceptions.RayTaskError) and "KeyboardInterrupt" in str(error):
            return Event(name, "stopped")
        told = str(error).strip().splitlines() or [type(error).__name__]
        return Event(name, "failed", f"Ray lost it {RETRIES + 1} times: {told[0]}")
    what, _, reason = outcome.partition(": ")
    return Event(name, what, reason)


def _needs(threads: int, gpus: float) -> str:
    return f"{threads} CPU" + (f" and {gpus:g} GPU" if gpus else "")
