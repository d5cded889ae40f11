"""The replay on disk: each checkpoint writes only what is new since the one before."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from quantail.errors import QuantailError
from quantail.files import checksum, read_arrays, write_arrays
from quantail.replay.frames import Index
from quantail.replay.store import ReplayStore

FIELDS = ("actions", "rewards", "flags")
# The names that are given to segments. Nothing else in replay/ is ever removed.
SEGMENT = re.compile(r"[0-9]{12,}-([0-9]{12,})\.safetensors")
UNFINISHED = re.compile(rf"\.{SEGMENT.pattern}\.part")
PLACES = 50_000  # in one file at most, so that writing it takes little memory


class ReplayJournal:
    """Segments of a store, in files that are written once and removed when nothing needs them."""

    def __init__(self, folder: Path, store: ReplayStore) -> None:
        self.folder = folder
        self.store = store
        self.segments: list[dict[str, Any]] = []  # oldest first

    def append(self) -> list[dict[str, Any]]:
        """Write what is new; the list of segments that together hold the store."""
        store = self.store
        done = np.array(self.segments[-1]["end"]) if self.segments else np.zeros_like(store.written)
        while (done < store.written).any():
            # The last place is written again: an episode may have been cut there since.
            begin = np.maximum(done - 1, store.oldest)
            end = np.minimum(begin + max(2, PLACES // store.envs), store.written)
            self.segments.append(self._write(done, begin, end))
            done = end
        oldest = store.oldest
        self.segments = [s for s in self.segments if (np.array(s["end"]) > oldest).any()]
        return list(self.segments)

    def _write(self, done: Index, begin: Index, end: Index) -> dict[str, Any]:
        self.folder.mkdir(exist_ok=True)
        name = f"{int(done.sum()):012d}-{int(end.sum()):012d}.safetensors"
        slots = self._slots(begin, end)
        fields = {field: getattr(self.store, field).flat[slots] for field in FIELDS}
        write_arrays(self.folder / name, self.store.frames.arrays(slots) | fields)
        return {
            "file": name,
            "begin": begin.tolist(),
            "end": end.tolist(),
            "checksum": checksum(self.folder / name),
        }

    def restore(self, segments: list[dict[str, Any]]) -> None:
        """Fill the store from these segments."""
        store = self.store
        for segment in segments:
            path = self.folder / segment["file"]
            if not path.exists() or checksum(path) != segment["checksum"]:
                raise QuantailError(f"{path} is missing, damaged or cut short.")
            arrays = read_arrays(path)
            slots = self._slots(np.array(segment["begin"]), np.array(segment["end"]))
            store.frames.restore(slots, arrays)
            for field in FIELDS:
                getattr(store, field).flat[slots] = arrays[field]
            store.written[:] = segment["end"]
        self.segments = list(segments)

    def prune(self, kept: set[str]) -> dict[Path, OSError]:
        """Remove the segments that no checkpoint names; return those that stayed, and why."""
        failed = {}
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            ours = SEGMENT.fullmatch(path.name) or UNFINISHED.fullmatch(path.name)
            if not ours or path.name in kept or path.is_symlink() or not path.is_file():
                continue
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                failed[path] = error
        return failed

    def _slots(self, begin: Index, end: Index) -> Index:
        """Where the places from begin to end of every environment lie, one environment after another."""
        runs = [np.arange(*ends) for ends in zip(begin, end, strict=True)]
        env = np.repeat(np.arange(len(runs)), [len(run) for run in runs])
        return self.store.slots(env, np.concatenate(runs))


def newest_place(folder: Path) -> int:
    """Return how many places the segments in a folder go up to, by their names."""
    if not folder.is_dir():
        return 0
    found = [SEGMENT.fullmatch(path.name) for path in folder.iterdir()]
    return max((int(one[1]) for one in found if one), default=0)
