"""Files that are either the old one or the new one, never a part of one."""

import errno
import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file as _load_arrays
from safetensors.numpy import save as _dump_arrays

from quantail.errors import QuantailError, damage

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

SEAL = "checksum"  # the key of a JSON file's own checksum


def no_follow(path: str, flags: int) -> int:
    """Open a file as `open` does, but refuse a symbolic link: an opener for what we write to."""
    try:
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise linked(Path(path)) from error
        raise


def linked(path: Path) -> QuantailError:
    """What is said of a symbolic link in a place that is written to."""
    return QuantailError(
        f"{path} is a symbolic link, and training would change what it points to: "
        "put the real one in its place."
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
            error.filename = str(path)  # the one that was asked for
        raise
    sync_folder(path.parent)


def require_writable(path: Path) -> None:
    """Refuse a file that cannot be written before any work is done for it."""
    if not path.parent.is_dir():
        raise QuantailError(
            f"there is no folder {path.parent} to write {path.name} into: make it first."
        )
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise QuantailError(f"{path} cannot be written: name a file in a folder of yours.")


def write_text(path: Path, content: str) -> None:
    write_bytes(path, content.encode())


def write_json(path: Path, content: dict[str, Any]) -> None:
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def write_sealed(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file together with a checksum of its content."""
    write_json(path, {**content, SEAL: _digest(content)})


def check_seal(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Return what `write_sealed` was given; refuse a file that was changed since."""
    rest = {name: value for name, value in content.items() if name != SEAL}
    try:
        whole = content.get(SEAL) == _digest(rest)
    except ValueError:  # NaN or infinity, which we never write
        whole = False
    if not whole:
        raise QuantailError(f"{path} is damaged: its content does not match its checksum.")
    return rest


def _digest(content: dict[str, Any]) -> str:
    """Return the SHA-256 of the content as JSON in one canonical form, whatever its layout in a file."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Named arrays as one safetensors file."""
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
        raise QuantailError(f"{path} is damaged or cut short: {error}") from error
    return arrays


def checksum(path: Path) -> str:
    """Size and CRC-32 of a file: enough to notice that it was cut or changed."""
    crc, size = 0, 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            crc, size = zlib.crc32(block, crc), size + len(block)
    return f"{size}:{crc:08x}"


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def hold(path: Path, busy: str, until: float = 0.0) -> Iterator[None]:
    """Hold a lock file that a killed process lets go of; where another holds it, say what is busy.

    `until` is a time of the monotonic clock up to which it is tried again.
    """
    while True:
        with open(path, "a+", opener=no_follow) as file:
            while fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() < until:
                        time.sleep(0.05)
                        continue
                    file.seek(0)
                    raise QuantailError(f"{busy} by process {file.read().strip()}.") from None
            if not _is_still(file, path):
                continue  # removed by the process that held it before: what we hold is no lock
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
                return
            finally:
                if fcntl is not None:  # a process forked meanwhile may share the open file
                    fcntl.flock(file, fcntl.LOCK_UN)


def _is_still(file: TextIO, path: Path) -> bool:
    """Whether an open file is the one of this name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def is_held(path: Path) -> bool:
    """Whether another process holds a lock file."""
    if fcntl is None or not path.exists():
        return False
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False
