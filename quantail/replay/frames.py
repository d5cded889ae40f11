"""Storage for the frames of a replay buffer, compressed where that saves memory."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quantail.replay.codec import FrameCodec
from quantail.spaces import LeafSpec, Observation, ObservationSpec, leaves_of

Index = NDArray[np.int64]
Array = NDArray[Any]

MIN_COMPRESSED_BYTES = 2048  # smaller frames are stored uncompressed
EXPECTED_RATIO = 16  # compression ratio assumed before any frame is seen
OVERHEAD_BYTES = 51  # Python's overhead for a compressed frame, its reference and its dictionary number


class Frames(Protocol):
    """Storage for a fixed number of frames of one array, addressed by their index."""

    def put(self, index: int, frame: Array) -> None:
        """Store a frame."""

    def read(self, indices: Index, out: Array) -> None:
        """Copy the frames at these indices into `out`, [indices, *frame]."""

    def arrays(self, indices: Index) -> dict[str, Array]:
        """Return the frames at these indices as arrays for a file."""

    def restore(self, indices: Index, arrays: dict[str, Array]) -> None:
        """Store the frames that `arrays` returned."""

    def remaining_bytes(self, steps: int) -> int:
        """Estimate the memory that `steps` more frames will take from the size of those stored."""


class PlainFrames:
    """Store frames uncompressed in one array."""

    def __init__(self, spec: LeafSpec, capacity: int) -> None:
        self.frames = np.zeros((capacity, *spec.shape), spec.dtype)

    def put(self, index: int, frame: Array) -> None:
        self.frames[index] = frame

    def read(self, indices: Index, out: Array) -> None:
        np.take(self.frames, indices, axis=0, out=out, mode="clip")

    def arrays(self, indices: Index) -> dict[str, Array]:
        return {"frames": self.frames[indices]}

    def restore(self, indices: Index, arrays: dict[str, Array]) -> None:
        self.frames[indices] = arrays["frames"]

    def remaining_bytes(self, steps: int) -> int:
        return 0


class CompressedFrames:
    """Compress each frame independently and without loss."""

    def __init__(self, spec: LeafSpec, capacity: int) -> None:
        self.shape, self.dtype = spec.shape, spec.dtype
        self.codec = FrameCodec(spec)
        self.blobs = np.full(capacity, b"", object)
        self.numbers = np.zeros(capacity, np.uint16)  # of the dictionaries
        self._bytes, self._stored = 0, 0  # over all compressed frames

    def put(self, index: int, frame: Array) -> None:
        self._set(index, *self.codec.encode(frame))

    def read(self, indices: Index, out: Array) -> None:
        # Stacks overlap, so each frame is decompressed only once.
        wanted, inverse = np.unique(indices, return_inverse=True)
        content = self.codec.decode(self.blobs[wanted], self.numbers[wanted].tolist())
        frames = content.view(self.dtype).reshape(-1, *self.shape)
        np.take(frames, inverse, axis=0, out=out, mode="clip")

    def arrays(self, indices: Index) -> dict[str, Array]:
        blobs = self.blobs[indices]
        used, numbers = np.unique(self.numbers[indices], return_inverse=True)
        dictionaries = [self.codec.dictionaries[number] for number in used]
        return {
            "blobs": np.frombuffer(b"".join(blobs), np.uint8),
            "sizes": np.array([len(blob) for blob in blobs], np.uint32),
            "numbers": numbers.astype(np.uint16),
            "dictionaries": np.frombuffer(b"".join(dictionaries), np.uint8),
            "dictionary_sizes": np.array([len(content) for content in dictionaries], np.uint32),
        }

    def restore(self, indices: Index, arrays: dict[str, Array]) -> None:
        contents = _split(arrays["dictionaries"], arrays["dictionary_sizes"])
        restored = [self.codec.add_dictionary(content) for content in contents]
        blobs = _split(arrays["blobs"], arrays["sizes"])
        for index, blob, number in zip(indices, blobs, arrays["numbers"], strict=True):
            self._set(int(index), blob, restored[number])
        self.codec.current = restored[arrays["numbers"][-1]]  # continue with the most recent one

    def remaining_bytes(self, steps: int) -> int:
        empty = min(len(self.blobs) - self._stored, steps)
        return int(empty * (self._bytes / self._stored + OVERHEAD_BYTES)) if self._stored else 0

    def _set(self, index: int, blob: bytes, number: int) -> None:
        old = self.blobs[index]
        self._bytes += len(blob) - len(old)
        self._stored += not old
        self.blobs[index] = blob
        self.numbers[index] = number


class ObservationFrames:
    """Storage for the frames of all arrays of an observation, each in its own dtype."""

    def __init__(self, spec: ObservationSpec, capacity: int) -> None:
        self.by_path = {path: make_frames(leaf, capacity) for path, leaf in spec.leaves.items()}
        self._columns = list(self.by_path.values())

    def put(self, index: int, frame: Observation) -> None:
        """Store the frame of an observation."""
        for column, leaf in zip(self._columns, leaves_of(frame).values(), strict=True):
            column.put(index, leaf)

    def read(self, indices: Index, out: Observation) -> None:
        """Copy the frames at these indices into arrays [indices, *frame]."""
        for column, leaf in zip(self._columns, leaves_of(out).values(), strict=True):
            column.read(indices, leaf)

    def arrays(self, indices: Index) -> dict[str, Array]:
        """Return the frames at these indices as arrays for a file, with their paths in the names."""
        return {
            f"{path}:{name}": array
            for path, column in self.by_path.items()
            for name, array in column.arrays(indices).items()
        }

    def restore(self, indices: Index, arrays: dict[str, Array]) -> None:
        """Store the frames that `arrays` returned."""
        for path, column in self.by_path.items():
            own = {k.rpartition(":")[2]: v for k, v in arrays.items() if k.rpartition(":")[0] == path}
            column.restore(indices, own)

    def remaining_bytes(self, steps: int) -> int:
        """Estimate the memory that `steps` more frames will take from the size of those stored."""
        return sum(column.remaining_bytes(steps) for column in self._columns)


def is_compressed(leaf: LeafSpec) -> bool:
    """Return whether frames of this kind are compressed: large frames of bytes and bits are."""
    return leaf.dtype in ("uint8", "bool") and leaf.frame_bytes >= MIN_COMPRESSED_BYTES


def make_frames(leaf: LeafSpec, capacity: int) -> Frames:
    """Create storage for `capacity` frames of this kind."""
    return CompressedFrames(leaf, capacity) if is_compressed(leaf) else PlainFrames(leaf, capacity)


def estimated_frame_bytes(spec: ObservationSpec) -> int:
    """Estimate the memory of one frame of an observation before any is seen."""
    return sum(
        leaf.frame_bytes // EXPECTED_RATIO + OVERHEAD_BYTES if is_compressed(leaf) else leaf.frame_bytes
        for leaf in spec.leaves.values()
    )


def _split(joined: Array, sizes: Array) -> list[bytes]:
    ends = np.cumsum(sizes, dtype=np.int64)
    content = joined.tobytes()
    return [content[end - size : end] for size, end in zip(sizes.tolist(), ends.tolist(), strict=True)]
