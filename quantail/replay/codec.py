"""Frames of one game are alike: lossless compression that learns what they have in common."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import zstandard as zstd
from numpy.typing import NDArray

from quantail.observations import ObservationSpec

Array = NDArray[Any]

LEVEL = 3
MAGICLESS = zstd.FORMAT_ZSTD1_MAGICLESS  # what every frame would begin with is left out
BLOCK = 1024  # frames after which the compression is judged
FIRST_BLOCK = 128  # the same, while there is no dictionary yet
SHARED = 8  # frames that make up a dictionary
STALE = 1.2  # frames that have grown by so much ask for another dictionary
MOST = 32  # dictionaries; when there are so many, the best of them has to do
GAIN = 0.92  # a new one must bring them down to so much of the best one there is


class FrameCodec:
    """Compresses each frame by itself against a dictionary: a few whole frames seen before.

    Dictionary 0 is empty. When frames have become larger, some of those just seen are tried with every
    dictionary there is and with a new one made of others of them; the best is used from then on. After
    a change that is tried again, until nothing better is found.
    """

    def __init__(self, spec: ObservationSpec) -> None:
        self.frame_bytes = spec.frame_bytes
        self.dictionaries: list[bytes] = []
        self._compressors: list[zstd.ZstdCompressor] = []
        self._decompressors: list[zstd.ZstdDecompressor] = []
        self.learn(b"")
        self.current = 0
        self._expected = 0.0  # bytes a frame, when no better dictionary was found; 0 is not known yet
        self._count, self._bytes = 0, 0  # of this block
        self._seen: list[bytes] = []

    def learn(self, content: bytes) -> int:
        """Add a dictionary of this content, unless it is there already; its number."""
        if content in self.dictionaries:
            return self.dictionaries.index(content)
        shared = (
            zstd.ZstdCompressionDict(content, dict_type=zstd.DICT_TYPE_RAWCONTENT) if content else None
        )
        parameters = zstd.ZstdCompressionParameters.from_level(
            LEVEL, source_size=self.frame_bytes, write_content_size=0, write_dict_id=0, format=MAGICLESS
        )
        self._compressors.append(zstd.ZstdCompressor(dict_data=shared, compression_params=parameters))
        self._decompressors.append(zstd.ZstdDecompressor(dict_data=shared, format=MAGICLESS))
        self.dictionaries.append(content)
        return len(self.dictionaries) - 1

    def encode(self, frame: Array) -> tuple[bytes, int]:
        """The compressed frame, and the number of its dictionary."""
        number, content = self.current, frame.tobytes()
        assert len(content) == self.frame_bytes
        # Copied, because what zstd returns keeps the place for a frame that did not shrink.
        blob = bytes(memoryview(self._compressors[number].compress(content)))
        self._count += 1
        self._bytes += len(blob)
        block = BLOCK if number else FIRST_BLOCK
        if self._count % (block // (2 * SHARED)) == 0:
            self._seen.append(content)
        if self._count == block:
            self._judge()
        return blob, number

    def decode(self, blobs: Iterable[bytes], numbers: Iterable[int]) -> Array:
        """The frames of these dictionaries, as rows of bytes that cannot be written to."""
        coders, size = self._decompressors, self.frame_bytes
        frames = [coders[n].decompress(blob, size) for blob, n in zip(blobs, numbers, strict=True)]
        return np.frombuffer(b"".join(frames), np.uint8).reshape(len(frames), size)

    def _judge(self) -> None:
        mean = self._bytes / self._count
        if mean > STALE * self._expected:
            best = self._best()
            self._expected = mean if best == self.current else 0.0
            self.current = best
        self._count, self._bytes, self._seen = 0, 0, []

    def _best(self) -> int:
        """The dictionary under which the frames just seen are smallest, perhaps a new one."""
        tried, shared = self._seen[::2], b"".join(self._seen[1::2])
        sizes = [self._size(number, tried) for number in range(len(self.dictionaries))]
        best = int(np.argmin(sizes))
        if len(sizes) == MOST:
            return best
        newest = self.learn(shared)
        if newest == best or self._size(newest, tried) < GAIN * sizes[best]:
            return newest
        if newest == len(sizes):
            for learned in (self.dictionaries, self._compressors, self._decompressors):
                learned.pop()
        return best

    def _size(self, number: int, frames: list[bytes]) -> int:
        return sum(len(self._compressors[number].compress(frame)) for frame in frames)
