"""Run the jobs of a study on a Ray cluster. If a worker dies, its job resumes from its checkpoint."""

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
from quantail.text import counted
from quantail.training.allocator import keep_large_blocks

RETRIES = 5  # how often a run is retried after its worker died
POLL = 0.2  # seconds


class RayEngine:
    """Run as many jobs in parallel as fit into the cluster, each with its threads and share of a GPU."""

    def __init__(self, threads: int, gpus: float, address: str) -> None:
        self.ray = connect(address)
        self.threads, self.gpus, self.address = threads, gpus, address
        resources = self.ray.cluster_resources()
        fits = [resources.get("CPU", 0.0) / threads]
        fits += [resources.get("GPU", 0.0) / gpus] if gpus else []
        self.at_once = int(min(fits))
        if self.at_once < 1:
            self.close()
            raise QuantailError(
                f"a run needs {_needs(threads, gpus)}, but the Ray cluster at {address} has "
                f"{resources.get('CPU', 0):g} CPU and {resources.get('GPU', 0):g} GPU."
            )

    def describe(self) -> str:
        nodes = sum(1 for node in self.ray.nodes() if node["Alive"])
        where = f"Ray {self.ray.__version__} at {self.address}, {counted(nodes, 'node')}"
        needs = _needs(self.threads, self.gpus)
        return f"{where}, {counted(self.at_once, 'run')} in parallel with {needs} each"

    def run(
        self, folder: StudyFolder, names: Sequence[str], stopping: Callable[[], bool]
    ) -> Iterator[Event | None]:
        ray = self.ray
        # max_calls=1 gives each run a new worker process, as in the local engine.
        needs = {"num_cpus": self.threads, "num_gpus": self.gpus}
        task = ray.remote(max_retries=RETRIES, max_calls=1, **needs)(_task)
        # With trust, a worker finds the user's own modules in the same folders as this process.
        search_path = [os.path.abspath(one) for one in sys.path] if folder.trust else []
        arguments = (str(folder.path.resolve()), sorted(folder.trust), search_path)
        for name in names:
            folder.log(name).unlink(missing_ok=True)  # the run creates it when it starts
        refs: dict[Any, str] = {task.remote(name, *arguments): name for name in names}
        started: set[str] = set()
        cancelled = False
        try:
            while refs:
                if stopping() and not cancelled:
                    cancelled = True
                    for ref in refs:
                        ray.cancel(ref)  # like Ctrl-C in the worker, which saves and exits
                finished, _ = ray.wait(list(refs), num_returns=1, timeout=POLL)
                for name in refs.values():
                    if name not in started and folder.log(name).exists():
                        started.add(name)
                        yield Event(name, "started")
                for ref in finished:
                    event = _event(ray, ref, refs.pop(ref))
                    if event.what == "stopped" and not stopping():  # its machine is shutting down
                        refs[task.remote(event.name, *arguments)] = event.name
                    else:
                        yield event
                if not finished:
                    yield None
        finally:  # interrupted: end the tasks immediately
            for ref in refs:
                ray.cancel(ref, force=True)

    def close(self) -> None:
        self.ray.shutdown()


def _task(name: str, path: str, trust: list[str], search_path: list[str]) -> str:
    """Run one job on a worker; `search_path` is searched for modules after installed packages."""
    sys.path += [one for one in search_path if one not in sys.path]
    keep_large_blocks()
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
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return Event(name, "failed", f"Ray lost it {RETRIES + 1} times: {lines[0]}")
    what, _, reason = outcome.partition(": ")
    return Event(name, what, reason)


def _needs(threads: int, gpus: float) -> str:
    return f"{threads} CPU" + (f" and {gpus:g} GPU" if gpus else "")
