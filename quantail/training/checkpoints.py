"""Checkpoints: numbered folders, each whole or not there at all.

    checkpoints/000010000/agent.safetensors     the online network: all that acting needs
                          learner.safetensors   target network, optimizer, running sums
                          actor.safetensors     the observations that the next decision sees
                          sampler.safetensors   priorities, where the replay is prioritized
                          state.json            counters, generators, episodes, tables, checksums
    checkpoints/last, best                      the name of one of them

The replay's segments lie beside them (see `replay/journal.py`) and are named in state.json.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from quantail.errors import QuantailError
from quantail.files import (
    checksum,
    read_arrays,
    sync_folder,
    write_arrays,
    write_sealed,
    write_text,
)
from quantail.training.run_folder import read_sealed

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


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk that has been found whole."""

    path: Path
    state: dict[str, Any]

    def arrays(self, name: str) -> Arrays:
        return read_arrays(self.path / f"{name}.safetensors")


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def repair(self) -> None:
        """Bring back what a save that was killed between its two renames had put aside."""
        for old in self.folder.glob(".*.old"):
            final = self.folder / old.name.removeprefix(".").removesuffix(".old")
            if not final.exists():
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
        return int(name) if name.isdecimal() else 0

    def _named(self, pointer: str) -> str:
        """What `last` or `best` holds; nothing where it is not there, no name where it is damaged."""
        path = self.folder / pointer
        return path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""

    def names(self) -> list[str]:
        """All checkpoints, oldest first."""
        return sorted(path.name for path in self.folder.glob("[0-9]*") if path.is_dir())

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
            before = [name for name in names if name < last]
            if not before:
                raise QuantailError(f"{self.folder.parent} has no checkpoint before {last}.")
            return before[-1]
        name = f"{int(which):09d}" if which.isdigit() else which
        if name not in names:
            known = ", ".join(str(int(n)) for n in names)
            raise QuantailError(
                f"checkpoint {which!r} is not there: it takes last, best, previous "
                f"or the steps of one that is kept ({known})."
            )
        return name

    def read(self, which: str) -> Checkpoint:
        """A checkpoint that has been checked to be whole."""
        path = self.folder / self.name_of(which)
        try:
            state = read_sealed(path / "state.json", SCHEMA)
            for part in ("checksums", *REQUIRED):
                if part not in state:
                    raise QuantailError(f"{path / 'state.json'} is damaged: it has no {part}.")
            for file, expected in state["checksums"].items():
                if not (path / file).exists() or checksum(path / file) != expected:
                    raise QuantailError(f"{path / file} is missing, damaged or cut short.")
        except QuantailError as error:
            others = [name for name in self.names() if name != path.name]
            advice = f" An older one is kept: use --checkpoint {int(others[-1])}." if others else ""
            raise QuantailError(f"{error}{advice}") from error
        return Checkpoint(path, state)

    def prune(self, keep: set[str]) -> None:
        """Remove all checkpoints but these, and what a broken-off save left."""
        for path in self.folder.iterdir():
            if path.is_dir() and path.name not in keep:
                shutil.rmtree(path)
