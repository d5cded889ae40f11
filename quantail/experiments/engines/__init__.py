"""Engines that run the jobs of a study, on this machine or on a Ray cluster."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from quantail.errors import QuantailError
from quantail.experiments.folder import StudyFolder
from quantail.validation import one_of

ENGINES = {
    "local": "processes on this machine",
    "ray": "tasks on a running Ray cluster, or on one started on this machine",
}


@dataclass(frozen=True)
class Event:
    """A change of a run: "started", "done", "stopped", or "failed" with a reason."""

    name: str
    what: str
    reason: str = ""


class Engine(Protocol):
    """The interface of an engine."""

    at_once: int  # number of runs in parallel

    def describe(self) -> str:
        """Describe where the runs are computed."""

    def run(
        self, folder: StudyFolder, names: Sequence[str], stopping: Callable[[], bool]
    ) -> Iterator[Event | None]:
        """Run jobs to their end and yield events, or None when some time has passed without one.

        Once `stopping()` is true, start no more jobs and let the running ones save and exit.
        """

    def close(self) -> None:
        """Release all resources."""


def make_engine(
    name: str, *, threads: int, gpus: float = 0.0, jobs: int | None = None, address: str | None = None
) -> Engine:
    """Return the engine with this name, for runs that need `threads` and `gpus` each."""
    if one_of("engine", name, ENGINES) == "local":
        if address is not None:
            raise QuantailError("address is an option of engine ray.")
        from quantail.experiments.engines.local import LocalEngine

        return LocalEngine(threads, jobs)
    if jobs is not None:
        raise QuantailError("jobs is an option of engine local: a Ray cluster runs as many jobs as fit.")
    from quantail.experiments.engines.ray import RayEngine

    return RayEngine(threads, gpus, address or "auto")
