"""quantail doctor"""

import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version

from rich.console import Console
from rich.markup import escape

from quantail.cli.parser import Parser
from quantail.envs.families import FALLBACK, FAMILIES, all_families
from quantail.errors import QuantailError
from quantail.extras import EXTRAS, require_extra


def run(words: list[str]) -> int:
    Parser(
        prog="quantail doctor",
        description="Check that what Quantail needs works, and list which extras are installed.",
    ).parse(words)
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    console = Console()
    families = [family for family in all_families() if family.name != FALLBACK]
    plain = {f"family {family.name}": family.check for family in families if not family.extra}
    works = [_report(console, name, check) for name, check in (CHECKS | plain).items()]
    for name, extra in EXTRAS.items():
        try:
            require_extra(name, f"{name} ({extra.purpose})")
        except QuantailError as error:
            console.print(f"[yellow]absent[/]  {escape(str(error))}")
            continue
        purpose = f", for {extra.purpose}"
        checks = {f"family {one.name}": one.check for one in families if one.extra == name}
        for what, check in (checks or {"": partial(_versions, extra.packages)}).items():
            works.append(_report(console, ", ".join(filter(None, (name, what))), check, purpose))
    return 0 if all(works) else 1


def _report(console: Console, name: str, check: Callable[[], str], suffix: str = "") -> bool:
    """Print the result of a check; return whether it succeeded."""
    try:
        console.print(f"[green]ok[/]      {name}: {check()}{suffix}")
    except Exception as error:
        console.print(f"[red]missing[/] {name}: {type(error).__name__}: {escape(str(error))}")
        return False
    return True


def _versions(packages: Iterable[str]) -> str:
    return ", ".join(f"{package} {version(package)}" for package in packages)


def _torch() -> str:
    import torch

    from quantail.training.train import pick_device

    return f"{torch.__version__}, {torch.get_num_threads()} threads, device {pick_device('auto')}"


def _kernels() -> str:
    from quantail.networks.kernels import load_kernels

    if load_kernels() is None:
        return "torch alone: pip install 'quantail[fast]' brings compiled ones"
    return "compiled by numba, for implicit networks, quantile losses and MinAtar on the CPU"


def _allocator() -> str:
    from quantail.training.allocator import keep_large_blocks

    changed = keep_large_blocks()
    return "set to keep large blocks" if changed else "unchanged (only glibc on Linux can be tuned)"


def _memory() -> str:
    from quantail.replay import ReplayStore
    from quantail.replay.memory import available_memory, human_bytes
    from quantail.spaces import ObservationSpec

    frame = ObservationSpec.array((84, 84), "uint8", "hw", 4)
    needed = human_bytes(ReplayStore.bytes_needed(frame, 1_000_000))
    return f"{human_bytes(available_memory())} free (the paper's Atari replay takes {needed})"


def _disk() -> str:
    from quantail.replay.memory import human_bytes

    with tempfile.NamedTemporaryFile(dir="."):
        return f"this folder is writable, {human_bytes(shutil.disk_usage('.').free)} free"


CHECKS: dict[str, Callable[[], str]] = {
    "python": platform.python_version,
    "torch": _torch,
    "kernels": _kernels,
    "gymnasium": FAMILIES[FALLBACK]().check,
    "memory": _memory,
    "disk": _disk,
    "allocator": _allocator,
}
