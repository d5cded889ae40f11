"""Check that a replay buffer fits in memory."""

from pathlib import Path

import psutil

from quantail.errors import QuantailError


def require_memory(needed: int) -> None:
    """Raise an error if a replay buffer of this size does not fit in the available memory."""
    free = available_memory()
    if needed > 0.9 * free:
        raise QuantailError(
            f"the replay buffer needs {human_bytes(needed)} and {human_bytes(free)} of memory is free: "
            "set a smaller buffer_size."
        )


def available_memory() -> int:
    """Return the bytes that the system and the container, if there is one, have available."""
    free = int(psutil.virtual_memory().available)
    group = Path("/sys/fs/cgroup")
    try:
        most, used = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        return min(free, int(most) - int(used) + _reclaimable(group))
    except (OSError, ValueError):  # no container, or one without a limit, whose limit is "max"
        return free


def _reclaimable(group: Path) -> int:
    """Return the bytes of the container's file cache, which the kernel drops when memory is needed."""
    facts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    return int(facts.get("inactive_file", 0))


def human_bytes(count: float) -> str:
    """Return a size in decimal units, such as "12.3 MB" or "7.1 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
