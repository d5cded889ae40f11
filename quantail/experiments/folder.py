"""A study on disk: what it is, its runs, what failed and why."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError
from quantail.experiments.study import Job, Study
from quantail.files import hold, read_json, write_json
from quantail.registry import Trust, origin_of, trusted_modules
from quantail.settings import shown
from quantail.training.checkpoints import SCHEMA as CHECKPOINT_SCHEMA
from quantail.training.run_folder import RunFolder, check_schema, read_sealed

SCHEMA = 1
PATIENCE = 2.0  # seconds for which another process may look at the lock


@dataclass(frozen=True)
class State:
    """Where one run stands, by its files."""

    job: Job
    steps: int
    rate: float  # steps a second when it last told; 0 where unknown
    done: bool
    failed: str  # why, or empty

    @property
    def begun(self) -> bool:
        return self.steps > 0


class StudyFolder:
    """The files of one study, below one folder."""

    def __init__(self, path: Path | str, trust: Trust = ()) -> None:
        self.path = Path(path)
        self.trust = trusted_modules(trust)  # modules that may be imported where study.json names them
        self.runs = self.path / "runs"
        self.failures = self.path / "failed"
        self.logs = self.path / "logs"
        self.figures = self.path / "figures"
        self.results = self.path / "results.csv"

    def open(self, study: Study) -> Study:
        """Begin the study here, or go on with the same one; seeds are added, never taken away."""
        self.make()
        if (self.path / "study.json").exists():
            there = self.read()
            if there.hash != study.hash and self._has_results():
                raise QuantailError(
                    f"{self.path} holds another study, {_difference(there, study)}: "
                    "name another folder with --out."
                )
            if there.hash == study.hash:
                both = study.with_seeds_of(there)
                if _seeds(both) == _seeds(there):
                    return there
                study = both
        for folder in (self.runs, self.failures, self.logs):
            folder.mkdir(parents=True, exist_ok=True)
        content = {"schema": SCHEMA, "hash": study.hash, "study": study.to_dict()}
        write_json(self.path / "study.json", content)
        self.__dict__.pop("jobs", None)
        return study

    def make(self) -> None:
        """The folder itself, where nothing else is in it."""
        there = {one.name for one in self.path.iterdir()} if self.path.exists() else set()
        if there - {".lock"} and "study.json" not in there:
            raise QuantailError(
                f"{self.path} is not a study: it has files but no study.json. Name another with --out."
            )
        self.path.mkdir(parents=True, exist_ok=True)

    def _has_results(self) -> bool:
        return self.results.exists() or (self.runs.exists() and any(self.runs.iterdir()))

    def read(self) -> Study:
        """The study in this folder, or why it cannot be read."""
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
            raise QuantailError(f"{path} is damaged: its study is not the one that its hash names.")
        return study

    @cached_property
    def jobs(self) -> dict[str, Job]:
        """Every run of the study by its name."""
        return {job.name: job for job in self.read().jobs()}

    def job(self, name: str) -> Job:
        if name not in self.jobs:
            raise QuantailError(f"{self.path} has no run {name!r}.")
        return self.jobs[name]

    def run(self, name: str) -> RunFolder:
        """An ordinary run."""
        return RunFolder(self.runs / name)

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from running this study."""
        deadline = time.monotonic() + PATIENCE
        with hold(self.path / ".lock", f"{self.path} is being run", until=deadline):
            yield

    # What became of a run

    def is_done(self, name: str) -> bool:
        """Whether a run came to its end and was evaluated there."""
        folder = self.run(name)
        try:
            last = (folder.checkpoints / "last").read_text(encoding="utf-8").strip()
            state = read_sealed(folder.checkpoints / last / "state.json", CHECKPOINT_SCHEMA)
            steps = self.jobs[name].settings.steps
            return bool(state["steps"] >= steps and state["done_at"]["evaluation"] >= state["steps"])
        except (OSError, KeyError, TypeError, QuantailError):
            return False

    def note_failure(self, name: str, reason: str) -> None:
        """Keep why a run failed."""
        write_json(self.failures / f"{name}.json", {"schema": SCHEMA, "reason": reason})

    def forget_failure(self, name: str) -> None:
        (self.failures / f"{name}.json").unlink(missing_ok=True)

    def failure(self, name: str) -> str:
        """Why a run failed, or nothing."""
        path = self.failures / f"{name}.json"
        return str(read_json(path).get("reason", "unknown")) if path.exists() else ""

    def state(self, name: str) -> State:
        """Where a run stands."""
        job = self.job(name)
        if self.is_done(name):
            return State(job, job.settings.steps, 0.0, done=True, failed="")
        steps, rate = _last_told(self.run(name).table("timing"))
        return State(job, steps, rate, done=False, failed=self.failure(name))

    def states(self) -> list[State]:
        return [self.state(name) for name in self.jobs]


def _seeds(study: Study) -> list[int]:
    """Of every combination."""
    return [one.seeds for one in study.configs()]


def _last_told(timing: Path) -> tuple[int, float]:
    """Steps and steps a second in the last whole row of timing.csv."""
    try:
        rows = timing.read_text(encoding="utf-8").splitlines()[1:]
        cells = rows[-1].split(",")
        return int(cells[0]), float(cells[3])
    except (OSError, IndexError, ValueError):
        return 0, 0.0


def _difference(there: Study, here: Study) -> str:
    """The first thing in which two studies differ, in words."""
    ours, theirs = here.identity(), there.identity()
    for name in ("name", "games", "preset", "grid", "references"):
        if ours[name] != theirs[name]:
            return f"with {name} {_told(theirs[name])}, not {_told(ours[name])}"
    for name in sorted(ours["settings"].keys() | theirs["settings"].keys()):
        values = [one["settings"].get(name, "as preset") for one in (theirs, ours)]
        if values[0] != values[1]:
            return f"with {name} {shown(values[0])}, not {shown(values[1])}"
    return "made by other code"


def _told(value: Any) -> str:
    """Names alone, of what has a name."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        words = []
        for one in value:
            if isinstance(one, dict) and "variants" in one:
                places = " ".join(variant["name"] for variant in one["variants"])
                words.append(f"{one['name']} {places}")
            else:
                words.append(str(one["name"]) if isinstance(one, dict) else str(one))
        return ", ".join(words) or "none"
    return str(value) or "none"
