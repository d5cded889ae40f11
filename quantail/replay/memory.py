"""Check that a replay buffer fits in memory."""

import os
from pathlib import Path

from quantail.errors import QuantailError


def require_memory(needed: int) -> None:
    """Raise an error if a replay buffer of this size does not fit in the available memory."""
    free = available_memory()
    if free is not None and needed > 0.9 * free:
        raise QuantailError(
            f"the replay buffer needs {human_bytes(needed)} and {human_bytes(free)} of memory is free: "
            "set a smaller buffer_size."
        )


def available_memory() -> int | None:
    """Return the bytes that the kernel and the container have available, or None if unknown."""
    limits = []
    try:
        facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        limits.append(int(facts["MemAvailable"].split()[0]) * 1024)
        group = Path("/sys/fs/cgroup")
        most = (group / "memory.max").read_text().strip()
        if most != "max":
            limits.append(int(most) - int((group / "memory.current").read_text()) + _reclaimable(group))
    except (OSError, ValueError, KeyError):
        pass
    if not limits and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)


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
