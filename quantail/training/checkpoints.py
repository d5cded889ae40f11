"""Checkpoints: numbered folders, each whole or not there at all.

    checkpoints/000010000/agent.safetensors     the online network: all that acting needs
                          learner.safetensors   target network, optimizer, running sums
                          actor.safetensors     the observations that the next decision sees
                          sampler.safetensors   priorities, where the replay is prioritized
                          state.json            counters, generators, episodes, tables, checksums
    checkpoints/last, best                      the name of one of them

The replay's segments lie beside them (see `replay/journal.py`) and are named in state.json.
"""

import math
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from quantail.errors import QuantailError, damage
from quantail.files import (
    checksum,
    read_arrays,
    sync_folder,
    write_arrays,
    write_sealed,
    write_text,
)
from quantail.training.clock import PHASES
from quantail.training.run_folder import read_sealed
from quantail.training.tables import TABLES

SCHEMA = 2
# What the trainer keeps in state.json.
REQUIRED = (
    "steps",
    "episodes",
    "recent",
    "last_loss",
    "done_at",
    "scores",
    "seconds",
    "logged_seconds",
    "tables",
    "generators",
    "playing",
    "replay",
)
Arrays = dict[str, NDArray[Any]]
LONGEST = 20  # characters of an unknown name that are repeated in a sentence
# The names that a save gives to folders. Nothing else in checkpoints/ is ever renamed or removed.
NAME = re.compile(r"[0-9]{9}|[1-9][0-9]{9,}")
UNFINISHED = re.compile(rf"\.({NAME.pattern})\.(part|old)")
# What a wrong value in a checkpoint may raise while it is restored.
WRONG = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk that has been found whole."""

    path: Path
    state: dict[str, Any]

    def arrays(self, name: str) -> Arrays:
        return read_arrays(self.path / f"{name}.safetensors")


def check_state(state: dict[str, Any], lanes: int, actions: int) -> None:
    """Raise TypeError or ValueError where a value of state.json would fail only later, in training."""
    scores, playing, recent = state["scores"], state["playing"], state["recent"]
    counts = [state["steps"], state["episodes"], scores["best_steps"]]
    counts += [state["tables"][name] for name in TABLES]
    counts += [1 + state["done_at"][name] for name in ("log", "evaluation", "checkpoint")]
    counts += [length for _, length in recent]
    numbers = [state["last_loss"] or 0.0, state["logged_seconds"]]
    numbers += [state["seconds"][name] for name in PHASES]
    numbers += [score for score, _ in recent] + [one["score"] for one in playing]
    numbers += [*scores["means"].values(), *scores["values"].values()]
    if not all(type(value) is int and value >= 0 for value in counts):
        raise TypeError("a count is not a whole number")
    if not all(type(value) in (int, float) and math.isfinite(value) for value in numbers):
        raise TypeError("a number is not finite")
    if len(playing) != lanes:
        raise ValueError(f"it has {len(playing)} episodes under way, not {lanes}")
    for one in playing:
        if type(one["seed"]) is not int or not set(one["actions"]) <= set(range(actions)):
            raise ValueError("an episode under way has an unknown seed or action")


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def repair(self) -> None:
        """Bring back what a save that was killed between its two renames had put aside."""
        for old in self._folders(UNFINISHED):
            final = self.folder / old.name[1:].removesuffix(".old")
            if old.name.endswith(".old") and not final.exists():
                old.rename(final)

    def save(self, steps: int, files: dict[str, Arrays], state: dict[str, Any]) -> str:
        """Write a checkpoint and make it the last one; its name."""
        name = f"{steps:09d}"
        partial = self.folder / f".{name}.part"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        sums = {}
        for file, arrays in files.items():
            path = partial / f"{file}.safetensors"
            write_arrays(path, arrays)
            sums[path.name] = checksum(path)
        write_sealed(partial / "state.json", {"schema": SCHEMA, **state, "checksums": sums})
        final, old = self.folder / name, self.folder / f".{name}.old"
        if final.exists():
            shutil.rmtree(old, ignore_errors=True)  # left by a save that could not remove it
            final.rename(old)
        partial.rename(final)
        sync_folder(self.folder)
        shutil.rmtree(old, ignore_errors=True)
        write_text(self.folder / "last", name + "\n")
        return name

    def mark_best(self, name: str) -> None:
        write_text(self.folder / "best", name + "\n")

    def forget_best(self) -> None:
        (self.folder / "best").unlink(missing_ok=True)

    def best_steps(self) -> int:
        """The step of the best checkpoint; 0 where none is."""
        name = self._named("best")
        return int(name) if NAME.fullmatch(name) else 0

    def _named(self, pointer: str) -> str:
        """What `last` or `best` holds; nothing where it is not there, no name where it is damaged."""
        path = self.folder / pointer
        return path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""

    def names(self) -> list[str]:
        """All checkpoints, oldest first."""
        return sorted((path.name for path in self._folders(NAME)), key=int)

    def older(self, name: str, *, resumable: bool = False) -> str:
        """Return the newest checkpoint before this one, or nothing.

        With `resumable`, one that is whole and whose replay is still there.
        """
        for other in reversed(self.names()):
            if int(other) < int(name) and (not resumable or self._is_resumable(other)):
                return other
        return ""

    def _is_resumable(self, name: str) -> bool:
        try:
            segments = self._whole(self.folder / name)["replay"]
            return all((self.folder.parent / "replay" / part["file"]).exists() for part in segments)
        except (QuantailError, OSError, *WRONG):
            return False

    def has_saved(self) -> bool:
        """Whether there is a checkpoint, or a sign that there was one."""
        return bool(self.names()) or any((self.folder / one).exists() for one in ("last", "best"))

    def _folders(self, pattern: re.Pattern[str]) -> list[Path]:
        """The folders whose names match as a whole."""
        if not self.folder.is_dir():
            return []
        return [one for one in self.folder.iterdir() if pattern.fullmatch(one.name) and one.is_dir()]

    def name_of(self, which: str) -> str:
        """The name behind `last`, `best`, `previous` or a number of steps."""
        names = self.names()
        if not names:
            raise QuantailError(f"{self.folder.parent} has no checkpoint: the run has not saved yet.")
        if which in ("last", "best"):
            named = self._named(which)
            if named in names:
                return named
            if which == "best":
                raise QuantailError(f"{self.folder.parent} has no best checkpoint yet: use last.")
            return names[-1]  # killed after the folder was there and before `last` named it
        if which == "previous":
            last = self.name_of("last")
            before = self.older(last)
            if not before:
                raise QuantailError(f"{self.folder.parent} has no checkpoint before {last}.")
            return before
        name = which.lstrip("0").rjust(9, "0")  # any number of steps, however long, without int()
        if name not in names:
            known = ", ".join(str(int(n)) for n in names)
            asked = which if len(which) <= LONGEST else f"{which[:LONGEST]}…"
            raise QuantailError(
                f"checkpoint {asked!r} is not there: it takes last, best, previous "
                f"or the steps of one that is kept ({known})."
            )
        return name

    def read(self, which: str, *, to_resume: bool = False) -> Checkpoint:
        """A checkpoint that has been checked to be whole."""
        path = self.folder / self.name_of(which)
        with self.blamed(path, to_resume=to_resume):
            return Checkpoint(path, self._whole(path))

    def _whole(self, path: Path) -> dict[str, Any]:
        """Return the state of a checkpoint after checking all of its files."""
        state = read_sealed(path / "state.json", SCHEMA)
        for part in ("checksums", *REQUIRED):
            if part not in state:
                raise QuantailError(f"{path / 'state.json'} is damaged: it has no {part}.")
        for file, expected in state["checksums"].items():
            if not (path / file).exists() or checksum(path / file) != expected:
                raise QuantailError(f"{path / file} is missing, damaged or cut short.")
        return state

    @contextmanager
    def blamed(self, path: Path, *, to_resume: bool = True) -> Iterator[None]:
        """Turn whatever a damaged checkpoint raises into a sentence that names an older one, if any."""
        try:
            yield
        except (QuantailError, *WRONG) as error:
            said = str(error)
            if not isinstance(error, QuantailError):
                said = f"{' '.join(damage(error).split()) or type(error).__name__}."
            if str(path) not in said:
                said = f"{path} cannot be restored: {said}"
            older = self.older(path.name, resumable=to_resume)
            advice = f" An older one is kept: use --checkpoint {int(older)}." if older else ""
            raise QuantailError(f"{said}{advice}") from error

    def prune(self, keep: set[str]) -> dict[Path, OSError]:
        """Remove all checkpoints but these, and what a broken-off save left; return what stayed and why.

        A checkpoint is renamed first, so that one whose removal is cut off is not taken for a whole one.
        """
        failed = {}
        for path in [*self._folders(UNFINISHED), *self._folders(NAME)]:
            if path.name in keep or path.is_symlink():
                continue
            try:
                if NAME.fullmatch(path.name):
                    path = path.rename(path.with_name(f".{path.name}.part"))
                shutil.rmtree(path)
            except OSError as error:
                failed[path] = error
        return failed
