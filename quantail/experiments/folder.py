"""The folder of a study on disk: its definition, its runs, and the reasons of failures."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError
from quantail.experiments.study import Job, Study
from quantail.files import check_schema, hold, read_json, write_json
from quantail.runs.checkpoints import Checkpoints
from quantail.runs.folder import RunFolder
from quantail.runs.tables import read_table
from quantail.settings import shown
from quantail.trust import Trust, origin_of, trusted_modules

SCHEMA = 1
PATIENCE = 2.0  # seconds to wait for another process that is checking the lock


@dataclass(frozen=True)
class State:
    """The progress of one run, read from its files."""

    job: Job
    steps: int
    rate: float  # steps per second in the last row of timing.csv; 0 if unknown
    done: bool
    failed: str  # the reason, or empty

    @property
    def started(self) -> bool:
        return self.steps > 0


class StudyFolder:
    """The files of one study."""

    def __init__(self, path: Path | str, trust: Trust = ()) -> None:
        self.path = Path(path)
        self.trust = trusted_modules(trust)  # modules that may be imported where study.json names them
        self.runs = self.path / "runs"
        self.failures = self.path / "failed"
        self.logs = self.path / "logs"
        self.figures = self.path / "figures"
        self.results = self.path / "results.csv"

    def open(self, study: Study) -> Study:
        """Create the study here, or continue the same study; seeds are added, never removed."""
        self.make()
        if (self.path / "study.json").exists():
            stored = self.read()
            if stored.hash != study.hash and self._has_results():
                raise QuantailError(
                    f"{self.path} holds another study, {_difference(stored, study)}: "
                    "name another folder with --out."
                )
            if stored.hash == study.hash:
                both = study.with_seeds_of(stored)
                if _seeds(both) == _seeds(stored):
                    return stored
                study = both
        for folder in (self.runs, self.failures, self.logs):
            folder.mkdir(parents=True, exist_ok=True)
        content = {"schema": SCHEMA, "hash": study.hash, "study": study.to_dict()}
        write_json(self.path / "study.json", content)
        self.__dict__.pop("jobs", None)
        return study

    def make(self) -> None:
        """Create the folder; refuse one that holds something else."""
        names = {one.name for one in self.path.iterdir()} if self.path.exists() else set()
        if names - {".lock"} and "study.json" not in names:
            raise QuantailError(
                f"{self.path} is not a study: it has files but no study.json. Name another with --out."
            )
        self.path.mkdir(parents=True, exist_ok=True)

    def _has_results(self) -> bool:
        return self.results.exists() or (self.runs.exists() and any(self.runs.iterdir()))

    def read(self) -> Study:
        """Read the study in this folder."""
        path = self.path / "study.json"
        if not path.exists():
            raise QuantailError(f"there is no study at {self.path}: it has no study.json.")
        content = read_json(path)
        check_schema(path, content, SCHEMA)
        try:
            study = Study.from_dict(content["study"], origin_of(path, self.trust))
        except (KeyError, TypeError, AttributeError) as error:
            raise QuantailError(f"{path} is damaged: {error!r}.") from error
        if study.hash != content.get("hash"):
            raise QuantailError(f"{path} is damaged: its study does not match its hash.")
        return study

    @cached_property
    def jobs(self) -> dict[str, Job]:
        """Return every run of the study by its name."""
        return {job.name: job for job in self.read().jobs()}

    def job(self, name: str) -> Job:
        if name not in self.jobs:
            raise QuantailError(f"{self.path} has no run {name!r}.")
        return self.jobs[name]

    def run(self, name: str) -> RunFolder:
        """Return the folder of a run, which is an ordinary run folder."""
        return RunFolder(self.runs / name)

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock that keeps other processes from running this study."""
        deadline = time.monotonic() + PATIENCE
        with hold(self.path / ".lock", f"{self.path} is being run", until=deadline):
            yield

    # Progress of the runs

    def is_done(self, name: str) -> bool:
        """Return whether a run is complete, with its final evaluation."""
        folder = self.run(name)
        try:
            last = Checkpoints(folder.checkpoints).described("last")
            return last.is_complete(self.jobs[name].config.run.steps)
        except (OSError, KeyError, TypeError, QuantailError):
            return False

    def note_failure(self, name: str, reason: str) -> None:
        """Save the reason why a run failed."""
        write_json(self.failures / f"{name}.json", {"schema": SCHEMA, "reason": reason})

    def forget_failure(self, name: str) -> None:
        (self.failures / f"{name}.json").unlink(missing_ok=True)

    def failure(self, name: str) -> str:
        """Return the reason why a run failed, or an empty string."""
        path = self.failures / f"{name}.json"
        return str(read_json(path).get("reason", "unknown")) if path.exists() else ""

    def state(self, name: str) -> State:
        """Return the progress of a run."""
        job = self.job(name)
        if self.is_done(name):
            return State(job, job.config.run.steps, 0.0, done=True, failed="")
        steps, rate = _last_timing(self.run(name).table("timing"))
        return State(job, steps, rate, done=False, failed=self.failure(name))

    def states(self) -> list[State]:
        return [self.state(name) for name in self.jobs]


def _seeds(study: Study) -> list[int]:
    """Return the number of seeds of every combination."""
    return [one.seeds for one in study.configs()]


def _last_timing(timing: Path) -> tuple[int, float]:
    """Return steps and steps per second from the last complete row of timing.csv; 0 without one."""
    try:
        table = read_table(timing)
        return int(table["steps"][-1]), float(table["steps_per_second"][-1])
    except (QuantailError, IndexError):
        return 0, 0.0


def _difference(stored: Study, new: Study) -> str:
    """Describe the first difference between two studies."""
    ours, theirs = new.identity(), stored.identity()
    for name in ("name", "games", "preset", "grid", "references"):
        if ours[name] != theirs[name]:
            return f"with {name} {_names(theirs[name])}, not {_names(ours[name])}"
    for name in sorted(ours["settings"].keys() | theirs["settings"].keys()):
        values = [one["settings"].get(name, "as preset") for one in (theirs, ours)]
        if values[0] != values[1]:
            return f"with {name} {shown(values[0])}, not {shown(values[1])}"
    return "made by other code"


def _names(value: Any) -> str:
    """Return a value in words; of axes and variants, only the names."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        words = []
        for one in value:
            if isinstance(one, dict) and "variants" in one:
                values = " ".join(variant["name"] for variant in one["variants"])
                words.append(f"{one['name']} {values}")
            else:
                words.append(str(one["name"]) if isinstance(one, dict) else str(one))
        return ", ".join(words) or "none"
    return str(value) or "none"
