"""Read and write files atomically, with checksums and locks."""

import errno
import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import lock_descriptor, unlock_descriptor
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file as _load_arrays
from safetensors.numpy import save as _dump_arrays

from quantail.errors import QuantailError, damage

SEAL = "checksum"  # the key of a JSON file's own checksum
ASKING = 0.2  # seconds after which a lock counts as held, and not only tested by another process


def no_follow(path: str, flags: int) -> int:
    """Open a file for writing, as an `opener` of `open`; raise an error if it is a symbolic link."""
    try:
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise link_error(Path(path)) from error
        raise


def link_error(path: Path) -> QuantailError:
    """Return the error for a symbolic link at a path that training writes to."""
    return QuantailError(
        f"{path} is a symbolic link, and training would change what it points to: "
        "replace it with the file or folder itself."
    )


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        with open(temporary, "wb", opener=no_follow) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.filename == str(temporary):
            error.filename = str(path)  # the file that the caller knows
        raise
    sync_folder(path.parent)


def require_writable(path: Path) -> None:
    """Raise an error if a file cannot be written, before any work is done for it."""
    if not path.parent.is_dir():
        raise QuantailError(
            f"there is no folder {path.parent} to write {path.name} into: create it first."
        )
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise QuantailError(f"{path} cannot be written: choose a file in a writable folder.")


def write_text(path: Path, content: str) -> None:
    write_bytes(path, content.encode())


def write_json(path: Path, content: dict[str, Any]) -> None:
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def write_sealed(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file together with a checksum of its content."""
    write_json(path, {**content, SEAL: _digest(content)})


def check_seal(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Return the content given to `write_sealed`; raise an error if the file was changed since."""
    rest = {name: value for name, value in content.items() if name != SEAL}
    try:
        valid = content.get(SEAL) == _digest(rest)
    except ValueError:  # NaN or infinity, which are never written
        valid = False
    if not valid:
        raise QuantailError(f"{path} is damaged: its content does not match its checksum.")
    return rest


def _digest(content: dict[str, Any]) -> str:
    """Return the SHA-256 of the content as canonical JSON, whatever the layout of the file."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write named arrays to a safetensors file."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_bytes(path, _dump_arrays(contiguous))


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise QuantailError(f"{path} cannot be read: {damage(error)}.") from error
    if not isinstance(content, dict):
        raise QuantailError(f"{path} cannot be read: it does not hold a JSON object.")
    return content


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        arrays: dict[str, NDArray[Any]] = _load_arrays(path)
    except (OSError, SafetensorError) as error:
        raise QuantailError(f"{path} is damaged or truncated: {error}") from error
    return arrays


def checksum(path: Path) -> str:
    """Return the size and CRC-32 of a file, which reveal whether it was truncated or changed."""
    crc, size = 0, 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            crc, size = zlib.crc32(block, crc), size + len(block)
    return f"{size}:{crc:08x}"


def sync_folder(folder: Path) -> None:
    """Flush renames in a folder to disk, if the system supports that."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def hold(path: Path, busy: str, until: float = 0.0) -> Iterator[None]:
    """Hold a lock file, which is released if the process is killed.

    If another process holds it, try again until the time `until` of the monotonic clock, then raise an
    error that begins with `busy`.
    """
    while True:
        with open(path, "ab+", opener=no_follow) as file:
            if not _lock(file, path, until):
                file.seek(1)
                process = file.read().decode(errors="replace").strip()
                raise QuantailError(
                    f"{busy} by {f'process {process}' if process else 'another process'}."
                )
            try:
                if not _is_file_at(file, path):
                    continue  # the process that held the lock removed the file: lock the new one
                file.truncate(0)
                file.write(f"\n{os.getpid()}".encode())  # Windows locks the first byte against readers
                file.flush()
                yield
                return
            finally:
                unlock_descriptor(file.fileno())  # a process that was forked meanwhile may share it


def is_held(path: Path) -> bool:
    """Return whether another process holds a lock file.

    The lock is taken for a moment to find out, because it has no shared mode.
    """
    try:
        # Some network file systems lock only files that are open for writing.
        with path.open("r+b" if os.access(path, os.W_OK) else "rb") as file:
            return not _lock(file, path, time.monotonic() + ASKING)
    except FileNotFoundError:
        return False


def _lock(file: BinaryIO, path: Path, until: float) -> bool:
    """Lock an open file; return False if another process holds it until this monotonic time."""
    try:
        while not lock_descriptor(file.fileno(), blocking=False):
            if time.monotonic() >= until:
                return False
            time.sleep(0.05)
    except OSError as error:
        raise QuantailError(f"{path} cannot be locked: {damage(error)}.") from error
    return True


def _is_file_at(file: BinaryIO, path: Path) -> bool:
    """Return whether an open file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def check_schema(path: Path, content: dict[str, Any], supported: int) -> None:
    """Raise an error if a file has no schema version, or another one than this Quantail reads."""
    if "schema" not in content:
        raise QuantailError(f"{path} is damaged: it has no schema version.")
    schema = content["schema"]
    is_number = isinstance(schema, int) and not isinstance(schema, bool) and schema > 0
    if not is_number or schema != supported:
        maker = "another" if not is_number else "a newer" if schema > supported else "an older"
        raise QuantailError(
            f"{path} was made by {maker} Quantail (its schema is {schema!r}; this version reads "
            f"{supported}): use the version that made it."
        )


def read_sealed(path: Path, supported: int) -> dict[str, Any]:
    """Read a JSON file with a checksum, after checking its schema version and its content."""
    content = read_json(path)
    check_schema(path, content, supported)
    return check_seal(path, content)
