"""Where the frames of a replay lie: as they are, or compressed where that is worth it."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quantail.observations import ObservationSpec
from quantail.replay.codec import FrameCodec

Index = NDArray[np.int64]
Array = NDArray[Any]

SMALL = 2048  # bytes of a frame below which it stays as it is
LIKELY = 16  # times that the frames of a game shrink, before any is seen
BESIDE = 51  # bytes that Python takes beside a compressed frame, its place and its dictionary's number


class Frames(Protocol):
    """A fixed number of slots, each for one frame."""

    def put(self, slot: int, frame: Array) -> None:
        """Store a frame."""

    def read(self, slots: Index, out: Array) -> None:
        """Fill out [slots, *frame] with the frames of these slots."""

    def arrays(self, slots: Index) -> dict[str, Array]:
        """These slots as arrays for a file."""

    def restore(self, slots: Index, arrays: dict[str, Array]) -> None:
        """The inverse of `arrays`."""

    def bytes_missing(self, places: int) -> int:
        """Memory that so many more frames will take, by what those there took."""


class PlainFrames:
    """One array."""

    def __init__(self, spec: ObservationSpec, slots: int) -> None:
        self.frames = np.zeros((slots, *spec.shape), spec.dtype)

    def put(self, slot: int, frame: Array) -> None:
        self.frames[slot] = frame

    def read(self, slots: Index, out: Array) -> None:
        np.take(self.frames, slots, axis=0, out=out, mode="clip")

    def arrays(self, slots: Index) -> dict[str, Array]:
        return {"frames": self.frames[slots]}

    def restore(self, slots: Index, arrays: dict[str, Array]) -> None:
        self.frames[slots] = arrays["frames"]

    def bytes_missing(self, places: int) -> int:
        return 0


class CompressedFrames:
    """Each frame compressed by itself, without loss."""

    def __init__(self, spec: ObservationSpec, slots: int) -> None:
        self.shape, self.dtype = spec.shape, spec.dtype
        self.codec = FrameCodec(spec)
        self.blobs = np.full(slots, b"", object)
        self.numbers = np.zeros(slots, np.uint16)  # of the dictionaries
        self._bytes, self._held = 0, 0

    def put(self, slot: int, frame: Array) -> None:
        self._set(slot, *self.codec.encode(frame))

    def read(self, slots: Index, out: Array) -> None:
        # Stacks overlap: each frame is decompressed once.
        wanted, inverse = np.unique(slots, return_inverse=True)
        content = self.codec.decode(self.blobs[wanted], self.numbers[wanted].tolist())
        frames = content.view(self.dtype).reshape(-1, *self.shape)
        np.take(frames, inverse, axis=0, out=out, mode="clip")

    def arrays(self, slots: Index) -> dict[str, Array]:
        blobs = self.blobs[slots]
        used, numbers = np.unique(self.numbers[slots], return_inverse=True)
        shared = [self.codec.dictionaries[number] for number in used]
        return {
            "blobs": np.frombuffer(b"".join(blobs), np.uint8),
            "sizes": np.array([len(blob) for blob in blobs], np.uint32),
            "numbers": numbers.astype(np.uint16),
            "dictionaries": np.frombuffer(b"".join(shared), np.uint8),
            "dictionary_sizes": np.array([len(content) for content in shared], np.uint32),
        }

    def restore(self, slots: Index, arrays: dict[str, Array]) -> None:
        if "frames" in arrays:  # written before frames were compressed
            for slot, frame in zip(slots, arrays["frames"], strict=True):
                self.put(int(slot), frame)
            return
        contents = _split(arrays["dictionaries"], arrays["dictionary_sizes"])
        learned = [self.codec.learn(content) for content in contents]
        blobs = _split(arrays["blobs"], arrays["sizes"])
        for slot, blob, number in zip(slots, blobs, arrays["numbers"], strict=True):
            self._set(int(slot), blob, learned[number])
        self.codec.current = learned[arrays["numbers"][-1]]  # to begin with, a recent one

    def bytes_missing(self, places: int) -> int:
        empty = min(len(self.blobs) - self._held, places)
        return int(empty * (self._bytes / self._held + BESIDE)) if self._held else 0

    def _set(self, slot: int, blob: bytes, number: int) -> None:
        old = self.blobs[slot]
        self._bytes += len(blob) - len(old)
        self._held += not old
        self.blobs[slot] = blob
        self.numbers[slot] = number


def compresses(spec: ObservationSpec) -> bool:
    """Whether frames are large enough, and of a kind, to be compressed."""
    return spec.dtype == "uint8" and spec.frame_bytes >= SMALL


def frames_for(spec: ObservationSpec, slots: int) -> Frames:
    """Slots for frames of this kind."""
    return CompressedFrames(spec, slots) if compresses(spec) else PlainFrames(spec, slots)


def likely_bytes(spec: ObservationSpec) -> int:
    """Memory for a frame, before any is seen."""
    return spec.frame_bytes // LIKELY + BESIDE if compresses(spec) else spec.frame_bytes


def _split(joined: Array, sizes: Array) -> list[bytes]:
    ends = np.cumsum(sizes, dtype=np.int64)
    content = joined.tobytes()
    return [content[end - size : end] for size, end in zip(sizes.tolist(), ends.tolist(), strict=True)]
