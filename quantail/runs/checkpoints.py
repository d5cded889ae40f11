"""Checkpoints: folders named by their number of steps, each written completely or not at all.

    checkpoints/000010000/agent.safetensors     the online network, which is all that acting needs
                          NAME.safetensors      the arrays of each other component that has any
                          state.json            the other values of each component, checksums
    checkpoints/last, best                      the name of a checkpoint

`training/components.py` has the list of components. The segments of the replay buffer are in `replay/`
(see `replay/journal.py`), and state.json lists them. A checkpoint may also hold the weights of the agent
alone: then it can act, and no run can be resumed from it.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quantail.errors import QuantailError, damage
from quantail.files import (
    checksum,
    read_arrays,
    read_sealed,
    sync_folder,
    write_arrays,
    write_sealed,
    write_text,
)
from quantail.stateful import State

SCHEMA = 1
STATE, ARRAYS = "state.json", ".safetensors"
AGENT = "agent"  # the component that holds the weights
MAX_SHOWN = 20  # characters of an unknown checkpoint name that an error message repeats
# Folder names of checkpoints. Nothing else in checkpoints/ is ever renamed or removed.
NAME = re.compile(r"[0-9]{9}|[1-9][0-9]{9,}")
UNFINISHED = re.compile(rf"\.({NAME.pattern})\.(part|old)")
# Exceptions that a wrong value in a checkpoint may raise while it is restored.
RESTORE_ERRORS = (
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
    """A checkpoint on disk whose files have been verified."""

    path: Path
    content: dict[str, Any]  # of state.json

    @property
    def components(self) -> set[str]:
        """The names of the components that were saved."""
        files = {name.removesuffix(ARRAYS) for name in self.content["checksums"]}
        return files | self.content.keys() - {"schema", "checksums"}

    @property
    def is_resumable(self) -> bool:
        """Whether it holds everything that training needs, and not the weights alone."""
        return self.components != {AGENT}

    def state_of(self, component: str) -> State:
        """Return the state that a component was saved with."""
        state: dict[str, Any] = dict(self.content[component])
        if f"{component}{ARRAYS}" in self.content["checksums"]:
            state |= read_arrays(self.path / f"{component}{ARRAYS}")
        return state

    @property
    def steps(self) -> int:
        return int(self.path.name)

    @property
    def seconds(self) -> dict[str, float]:
        """The time that the run has spent in each phase; none if only the weights are here."""
        if not self.is_resumable:
            return {}
        try:
            return {name: float(spent) for name, spent in self.content["clock"].items()}
        except RESTORE_ERRORS as error:
            raise QuantailError(f"{self.path / STATE} is damaged: {damage(error)}.") from error

    def is_complete(self, steps: int) -> bool:
        """Return whether a run of this length has ended here, with its final evaluation and row."""
        return has_ended(self.content["due"], self.steps, steps)


def has_ended(done_at: Mapping[str, int], steps: int, total_steps: int) -> bool:
    """Return whether a run has reached its end, given when it was last evaluated and logged."""
    return steps >= total_steps and min(done_at["evaluation"], done_at["log"]) >= steps


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def repair(self) -> None:
        """Restore the old checkpoint that a save had moved aside when it was killed."""
        for old in self._folders(UNFINISHED):
            final = self.folder / old.name[1:].removesuffix(".old")
            if old.name.endswith(".old") and not final.exists():
                old.rename(final)

    def save(self, steps: int, components: Mapping[str, State]) -> str:
        """Write the states of the components, make this the last checkpoint and return its name."""
        name = f"{steps:09d}"
        partial = self.folder / f".{name}.part"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        sums, rest = {}, {}
        for component, state in components.items():
            arrays = {key: value for key, value in state.items() if isinstance(value, np.ndarray)}
            rest[component] = {key: value for key, value in state.items() if key not in arrays}
            if arrays:
                path = partial / f"{component}{ARRAYS}"
                write_arrays(path, arrays)
                sums[path.name] = checksum(path)
        write_sealed(partial / STATE, {"schema": SCHEMA, **rest, "checksums": sums})
        self._put_in_place(name)
        write_text(self.folder / "last", name + "\n")
        return name

    def _put_in_place(self, name: str) -> None:
        """Let the finished folder `.NAME.part` take the place of the checkpoint of this name, if any."""
        final, old = self.folder / name, self.folder / f".{name}.old"
        if final.exists():
            shutil.rmtree(old, ignore_errors=True)  # left by a save that could not remove it
            final.rename(old)
        (self.folder / f".{name}.part").rename(final)
        sync_folder(self.folder)
        shutil.rmtree(old, ignore_errors=True)

    def reduce_to_weights(self, name: str) -> None:
        """Remove everything from a checkpoint but the weights of its agent, if that is not done yet.

        A damaged checkpoint is left as it is.
        """
        path, file = self.folder / name, f"{AGENT}{ARRAYS}"
        if path.is_symlink() or {one.name for one in path.iterdir()} == {STATE, file}:
            return
        try:
            content = self._verified(path)
            reduced = {
                "schema": SCHEMA,
                AGENT: content[AGENT],
                "checksums": {file: content["checksums"][file]},
            }
        except (QuantailError, *RESTORE_ERRORS):
            return
        partial = self.folder / f".{name}.part"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        shutil.copyfile(path / file, partial / file)
        write_sealed(partial / STATE, reduced)
        self._put_in_place(name)

    def mark_best(self, name: str) -> None:
        write_text(self.folder / "best", name + "\n")

    def clear_best(self) -> None:
        (self.folder / "best").unlink(missing_ok=True)

    def best_steps(self) -> int:
        """Return the number of steps of the best checkpoint, or 0 if there is none."""
        name = self._read_pointer("best")
        return int(name) if NAME.fullmatch(name) else 0

    def _read_pointer(self, pointer: str) -> str:
        """Return the content of `last` or `best`, or "" if the file does not exist."""
        path = self.folder / pointer
        return path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""

    def names(self) -> list[str]:
        """Return the names of all checkpoints, oldest first."""
        return sorted((path.name for path in self._folders(NAME)), key=int)

    def older(self, name: str, *, resumable: bool = False) -> str:
        """Return the newest checkpoint before this one, or "" if there is none.

        With `resumable`, its files must be intact and its replay segments must exist.
        """
        for other in reversed(self.names()):
            if int(other) < int(name) and (not resumable or self._is_resumable(other)):
                return other
        return ""

    def _is_resumable(self, name: str) -> bool:
        try:
            segments = self._verified(self.folder / name)["replay"]["segments"]
            return all((self.folder.parent / "replay" / part["file"]).exists() for part in segments)
        except (QuantailError, OSError, *RESTORE_ERRORS):
            return False

    def has_saved(self) -> bool:
        """Return whether there is a checkpoint, or a pointer to one that is missing."""
        return bool(self.names()) or any((self.folder / one).exists() for one in ("last", "best"))

    def _folders(self, pattern: re.Pattern[str]) -> list[Path]:
        """Return the folders whose full names match the pattern."""
        if not self.folder.is_dir():
            return []
        return [one for one in self.folder.iterdir() if pattern.fullmatch(one.name) and one.is_dir()]

    def name_of(self, which: str) -> str:
        """Return the checkpoint name for `last`, `best`, `previous` or a number of steps."""
        names = self.names()
        if not names:
            raise QuantailError(f"{self.folder.parent} has no checkpoint: the run has not saved yet.")
        if which in ("last", "best"):
            name = self._read_pointer(which)
            if name in names:
                return name
            if which == "best":
                raise QuantailError(f"{self.folder.parent} has no best checkpoint yet: use last.")
            return names[-1]  # a save was killed after writing the folder and before updating `last`
        if which == "previous":
            last = self.name_of("last")
            before = self.older(last)
            if not before:
                raise QuantailError(f"{self.folder.parent} has no checkpoint before {last}.")
            return before
        name = which.lstrip("0").rjust(9, "0")  # without int(), because the text may be very long
        if name not in names:
            known = ", ".join(str(int(n)) for n in names)
            shown = which if len(which) <= MAX_SHOWN else f"{which[:MAX_SHOWN]}…"
            raise QuantailError(
                f"checkpoint {shown!r} does not exist: use last, best, previous "
                f"or the steps of a saved checkpoint ({known})."
            )
        return name

    def read(self, which: str, *, to_resume: bool = False) -> Checkpoint:
        """Return a checkpoint after verifying its files."""
        path = self.folder / self.name_of(which)
        with self.explain_damage(path, to_resume=to_resume):
            return Checkpoint(path, self._verified(path))

    def described(self, which: str) -> Checkpoint:
        """Return a checkpoint after verifying state.json alone, which is quick."""
        path = self.folder / self.name_of(which)
        return Checkpoint(path, read_sealed(path / STATE, SCHEMA))

    def _verified(self, path: Path) -> dict[str, Any]:
        """Return the content of state.json after verifying all files of a checkpoint."""
        content = read_sealed(path / STATE, SCHEMA)
        if "checksums" not in content:
            raise QuantailError(f"{path / STATE} is damaged: it has no checksums.")
        for file, expected in content["checksums"].items():
            if not (path / file).exists() or checksum(path / file) != expected:
                raise QuantailError(f"{path / file} is missing, damaged or truncated.")
        return content

    @contextmanager
    def explain_damage(self, path: Path, *, to_resume: bool = True) -> Iterator[None]:
        """Turn errors from a damaged checkpoint into a message that suggests an older one, if any."""
        try:
            yield
        except (QuantailError, *RESTORE_ERRORS) as error:
            message = str(error)
            if not isinstance(error, QuantailError):
                message = f"{' '.join(damage(error).split()) or type(error).__name__}."
            if str(path) not in message:
                message = f"{path} cannot be restored: {message}"
            older = self.older(path.name, resumable=to_resume)
            advice = f" An older checkpoint exists: use --checkpoint {int(older)}." if older else ""
            raise QuantailError(f"{message}{advice}") from error

    def prune(self, keep: set[str]) -> dict[Path, OSError]:
        """Remove all other checkpoints and the remains of interrupted saves.

        Return the folders that could not be removed, and why. A checkpoint is renamed first, so that an
        interrupted removal does not leave a folder that looks like a complete checkpoint.
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
