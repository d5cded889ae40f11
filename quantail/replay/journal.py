"""The replay buffer on disk: each checkpoint appends only the steps since the previous one."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from quantail.errors import QuantailError
from quantail.files import checksum, read_arrays, write_arrays
from quantail.replay.frames import Array, Index
from quantail.replay.store import ReplayStore
from quantail.stateful import State, require_keys

FIELDS = ("actions", "rewards", "flags")
# File names of segments. Nothing else in replay/ is ever removed.
SEGMENT = re.compile(r"[0-9]{12,}-([0-9]{12,})\.safetensors")
UNFINISHED = re.compile(rf"\.{SEGMENT.pattern}\.part")
STEPS_PER_FILE = 50_000  # at most, so that writing a file takes little memory


class ReplayJournal:
    """Write a store to segment files, each written once and removed when no checkpoint needs it."""

    def __init__(self, folder: Path, store: ReplayStore) -> None:
        self.folder = folder
        self.store = store
        self.segments: list[dict[str, Any]] = []  # oldest first
        self._fields = (*FIELDS, "masks") if store.num_masked else FIELDS

    def state_dict(self) -> dict[str, Any]:
        """Write the new steps and return the list of segments that together hold the store."""
        self._append()
        return {"segments": list(self.segments)}

    def _append(self) -> None:
        store = self.store
        done = np.array(self.segments[-1]["end"]) if self.segments else np.zeros_like(store.written)
        while (done < store.written).any():
            # The last step is written again, because its episode may have been truncated since.
            begin = np.maximum(done - 1, store.oldest)
            end = np.minimum(begin + max(2, STEPS_PER_FILE // store.num_envs), store.written)
            self.segments.append(self._write(done, begin, end))
            done = end
        oldest = store.oldest
        self.segments = [s for s in self.segments if (np.array(s["end"]) > oldest).any()]

    def files(self) -> set[str]:
        """Return the names of the segment files that hold the store."""
        return {segment["file"] for segment in self.segments}

    def _write(self, done: Index, begin: Index, end: Index) -> dict[str, Any]:
        self.folder.mkdir(exist_ok=True)
        name = f"{int(done.sum()):012d}-{int(end.sum()):012d}.safetensors"
        indices = self._indices(begin, end)
        fields = {field: self._rows(field)[indices] for field in self._fields}
        write_arrays(self.folder / name, self.store.frames.arrays(indices) | fields)
        return {
            "file": name,
            "begin": begin.tolist(),
            "end": end.tolist(),
            "checksum": checksum(self.folder / name),
        }

    def load_state_dict(self, state: State) -> None:
        """Fill the store from the segments."""
        require_keys(state, ("segments",))
        store, segments = self.store, state["segments"]
        for segment in segments:
            require_keys(segment, ("file", "begin", "end", "checksum"))
            path = self.folder / segment["file"]
            if not path.exists() or checksum(path) != segment["checksum"]:
                raise QuantailError(f"{path} is missing, damaged or truncated.")
            arrays = read_arrays(path)
            indices = self._indices(np.array(segment["begin"]), np.array(segment["end"]))
            store.frames.restore(indices, arrays)
            for field in self._fields:
                self._rows(field)[indices] = arrays[field]
            store.written[:] = segment["end"]
        self.segments = list(segments)

    def check(self) -> None:
        self.store.check()

    def prune(self, kept: set[str]) -> dict[Path, OSError]:
        """Remove all segments but those to keep; return the files that could not be removed, and why."""
        failed = {}
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            is_ours = SEGMENT.fullmatch(path.name) or UNFINISHED.fullmatch(path.name)
            if not is_ours or path.name in kept or path.is_symlink() or not path.is_file():
                continue
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                failed[path] = error
        return failed

    def _rows(self, field: str) -> Array:
        """Return a view of a field with one row for each position of the concatenated rings."""
        array: Array = getattr(self.store, field)
        return array.reshape(self.store.num_envs * self.store.length, *array.shape[2:])

    def _indices(self, begin: Index, end: Index) -> Index:
        """Return the ring indices of steps `begin` to `end`, one environment after another."""
        ranges = [np.arange(*ends) for ends in zip(begin, end, strict=True)]
        env = np.repeat(np.arange(len(ranges)), [len(one) for one in ranges])
        return self.store.indices(env, np.concatenate(ranges))


def newest_step(folder: Path) -> int:
    """Return the number of steps up to which the segments in a folder reach, from their file names."""
    if not folder.is_dir():
        return 0
    matches = [SEGMENT.fullmatch(path.name) for path in folder.iterdir()]
    return max((int(match[1]) for match in matches if match), default=0)
