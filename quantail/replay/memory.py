"""How much memory a replay takes, and whether it is there."""

import os
from pathlib import Path

from quantail.errors import QuantailError


def require_memory(needed: int) -> None:
    """Refuse a replay that does not fit in what the machine has left."""
    free = available_memory()
    if free is not None and needed > 0.9 * free:
        raise QuantailError(
            f"the replay needs {human_bytes(needed)} and {human_bytes(free)} of memory is free: "
            "set a smaller replay_capacity."
        )


def available_memory() -> int | None:
    """Bytes that can still be taken, by the kernel's and the container's account; None if unknown."""
    limits = []
    try:
        facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        limits.append(int(facts["MemAvailable"].split()[0]) * 1024)
        group = Path("/sys/fs/cgroup")
        most = (group / "memory.max").read_text().strip()
        if most != "max":
            limits.append(int(most) - int((group / "memory.current").read_text()) + _given_back(group))
    except (OSError, ValueError, KeyError):
        pass
    if not limits and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)


def _given_back(group: Path) -> int:
    """The container's file cache that the kernel drops when memory is asked for."""
    facts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    return int(facts.get("inactive_file", 0))


def human_bytes(count: float) -> str:
    """12.3 MB, 7.1 GB: decimal units."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
