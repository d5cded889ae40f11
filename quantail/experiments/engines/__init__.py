"""Engines: where the runs of a study are computed. Each yields what happens, and a None now and then."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from quantail.errors import QuantailError, did_you_mean
from quantail.experiments.folder import StudyFolder

ENGINES = {
    "local": "processes on this machine",
    "ray": "tasks on a Ray cluster, or on one that is started here",
}


@dataclass(frozen=True)
class Event:
    """A run began, or ended: "started", "done", "stopped" or "failed" with a reason."""

    name: str
    what: str
    reason: str = ""


class Engine(Protocol):
    """What runs jobs."""

    at_once: int  # runs at the same time

    def describe(self) -> str:
        """Where it computes, in words."""

    def run(
        self, folder: StudyFolder, names: Sequence[str], stopping: Callable[[], bool]
    ) -> Iterator[Event | None]:
        """Run jobs to their end; once `stopping`, let those that run save, and start no more."""

    def close(self) -> None:
        """Let go of what it holds."""


def make_engine(
    name: str, *, threads: int, gpus: float = 0.0, jobs: int | None = None, address: str | None = None
) -> Engine:
    """The engine of this name for runs that need so many threads and GPUs each."""
    if name == "local":
        if address is not None:
            raise QuantailError("address is Ray's: give engine ray with it.")
        from quantail.experiments.engines.local import LocalEngine

        return LocalEngine(threads, jobs)
    if name == "ray":
        if jobs is not None:
            raise QuantailError("jobs is the local engine's: a Ray cluster runs as many as fit into it.")
        from quantail.experiments.engines.ray import RayEngine

        return RayEngine(threads, gpus, address or "auto")
    raise QuantailError(
        f"unknown engine {name!r}: it takes {' or '.join(ENGINES)}.{did_you_mean(name, ENGINES)}"
    )
