"""Lossless frame compression with dictionaries, which uses that the frames of a game are similar."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import zstandard as zstd
from numpy.typing import NDArray

from quantail.spaces import LeafSpec

Array = NDArray[Any]

COMPRESSION_LEVEL = 3
MAGICLESS = zstd.FORMAT_ZSTD1_MAGICLESS  # omits the constant header of every compressed frame
BLOCK = 1024  # number of frames between two checks of the compression ratio
FIRST_BLOCK = 128  # the same, while there is no dictionary yet
FRAMES_PER_DICTIONARY = 8
MAX_GROWTH = 1.2  # look for another dictionary when compressed frames grow by more than this factor
MAX_DICTIONARIES = 32  # when this many exist, no new one is made
MAX_RATIO = 0.92  # a new dictionary must reduce the size to this fraction of the best existing one


class FrameCodec:
    """Compress each frame independently with a dictionary made of a few earlier frames.

    Dictionary 0 is empty. When compressed frames become larger, the codec compresses some of the recent
    frames with every existing dictionary and with a new one made of other recent frames, and uses the
    best from then on. After a change it compares again, until it finds nothing better.
    """

    def __init__(self, spec: LeafSpec) -> None:
        self.frame_bytes = spec.frame_bytes
        self.dictionaries: list[bytes] = []
        self._compressors: list[zstd.ZstdCompressor] = []
        self._decompressors: list[zstd.ZstdDecompressor] = []
        self.add_dictionary(b"")
        self.current = 0
        self._expected = 0.0  # bytes per frame when no better dictionary was found; 0 if not yet known
        self._count, self._bytes = 0, 0  # in this block
        self._seen: list[bytes] = []

    def add_dictionary(self, content: bytes) -> int:
        """Add a dictionary with this content unless it already exists, and return its number."""
        if content in self.dictionaries:
            return self.dictionaries.index(content)
        dictionary = (
            zstd.ZstdCompressionDict(content, dict_type=zstd.DICT_TYPE_RAWCONTENT) if content else None
        )
        parameters = zstd.ZstdCompressionParameters.from_level(
            COMPRESSION_LEVEL,
            source_size=self.frame_bytes,
            write_content_size=0,
            write_dict_id=0,
            format=MAGICLESS,
        )
        self._compressors.append(
            zstd.ZstdCompressor(dict_data=dictionary, compression_params=parameters)
        )
        self._decompressors.append(zstd.ZstdDecompressor(dict_data=dictionary, format=MAGICLESS))
        self.dictionaries.append(content)
        return len(self.dictionaries) - 1

    def encode(self, frame: Array) -> tuple[bytes, int]:
        """Return the compressed frame and the number of its dictionary."""
        number, content = self.current, frame.tobytes()
        assert len(content) == self.frame_bytes
        # Copied, because the buffer that zstd returns is as large as an uncompressed frame.
        blob = bytes(memoryview(self._compressors[number].compress(content)))
        self._count += 1
        self._bytes += len(blob)
        block = BLOCK if number else FIRST_BLOCK
        if self._count % (block // (2 * FRAMES_PER_DICTIONARY)) == 0:
            self._seen.append(content)
        if self._count == block:
            self._check_ratio()
        return blob, number

    def decode(self, blobs: Iterable[bytes], numbers: Iterable[int]) -> Array:
        """Return the decompressed frames as a read-only array of bytes, one row for each frame.

        `numbers` are the dictionaries that the frames were compressed with.
        """
        decompressors, size = self._decompressors, self.frame_bytes
        frames = [
            decompressors[n].decompress(blob, size) for blob, n in zip(blobs, numbers, strict=True)
        ]
        return np.frombuffer(b"".join(frames), np.uint8).reshape(len(frames), size)

    def _check_ratio(self) -> None:
        mean = self._bytes / self._count
        if mean > MAX_GROWTH * self._expected:
            best = self._best_dictionary()
            self._expected = mean if best == self.current else 0.0
            self.current = best
        self._count, self._bytes, self._seen = 0, 0, []

    def _best_dictionary(self) -> int:
        """Return the number of the dictionary that compresses recent frames best, perhaps a new one."""
        frames, content = self._seen[::2], b"".join(self._seen[1::2])
        sizes = [self._size(number, frames) for number in range(len(self.dictionaries))]
        best = int(np.argmin(sizes))
        if len(sizes) == MAX_DICTIONARIES:
            return best
        newest = self.add_dictionary(content)
        if newest == best or self._size(newest, frames) < MAX_RATIO * sizes[best]:
            return newest
        if newest == len(sizes):
            for items in (self.dictionaries, self._compressors, self._decompressors):
                items.pop()
        return best

    def _size(self, number: int, frames: list[bytes]) -> int:
        return sum(len(self._compressors[number].compress(frame)) for frame in frames)
