"""quantail doctor"""

import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable
from importlib.metadata import version

from rich.console import Console
from rich.markup import escape

from quantail.cli.parser import Parser
from quantail.errors import QuantailError
from quantail.extras import EXTRAS, require_extra


def run(words: list[str]) -> int:
    Parser(
        prog="quantail doctor",
        description="Check that what Quantail needs works, and list which extras are installed.",
    ).parse(words)
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    failed = 0
    console = Console()
    for name, check in CHECKS.items():
        try:
            console.print(f"[green]ok[/]      {name}: {check()}")
        except Exception as error:
            failed += 1
            console.print(f"[red]missing[/] {name}: {type(error).__name__}: {escape(str(error))}")
    for name, extra in EXTRAS.items():
        try:
            require_extra(name, f"{name} ({extra.purpose})")
        except QuantailError as error:
            console.print(f"[yellow]absent[/]  {escape(str(error))}")
            continue
        try:
            found = GAMES[name]() if name in GAMES else _versions(extra.packages)
            console.print(f"[green]ok[/]      {name}: {found}, for {extra.purpose}")
        except Exception as error:
            failed += 1
            console.print(f"[red]missing[/] {name}: {type(error).__name__}: {escape(str(error))}")
    return 1 if failed else 0


def _versions(packages: Iterable[str]) -> str:
    return ", ".join(f"{package} {version(package)}" for package in packages)


def _torch() -> str:
    import torch

    from quantail.training.train import pick_device

    return f"{torch.__version__}, {torch.get_num_threads()} threads, device {pick_device('auto')}"


def _gymnasium() -> str:
    import gymnasium

    gymnasium.make("CartPole-v1").reset(seed=0)
    return f"{gymnasium.__version__}, CartPole-v1 works"


def _minatar() -> str:
    from quantail.envs import make
    from quantail.recipes import compose

    make("MinAtar/Breakout-v1", compose("minatar", {})).reset(seed=0)
    return f"{_versions(['MinAtar'])}, Breakout works"


def _atari() -> str:
    from ale_py import roms

    from quantail.envs import make
    from quantail.recipes import compose

    make("ALE/Pong-v5", compose("atari-paper", {})).reset(seed=0)
    return f"ale-py {version('ale-py')}, {len(roms.get_all_rom_ids())} ROMs, Pong works"


def _allocator() -> str:
    from quantail.training.allocator import keep_large_blocks

    changed = keep_large_blocks()
    return "set to keep large blocks" if changed else "unchanged (only glibc on Linux can be tuned)"


def _memory() -> str:
    from quantail.replay import ReplayStore
    from quantail.replay.memory import available_memory, human_bytes
    from quantail.spaces import ObservationSpec

    frame = ObservationSpec((84, 84), "uint8", "hw", 4)
    needed = human_bytes(ReplayStore.bytes_needed(frame, 1_000_000))
    return f"{human_bytes(available_memory())} free (the paper's Atari replay takes {needed})"


def _disk() -> str:
    from quantail.replay.memory import human_bytes

    with tempfile.NamedTemporaryFile(dir="."):
        return f"this folder is writable, {human_bytes(shutil.disk_usage('.').free)} free"


CHECKS: dict[str, Callable[[], str]] = {
    "python": platform.python_version,
    "torch": _torch,
    "gymnasium": _gymnasium,
    "memory": _memory,
    "disk": _disk,
    "allocator": _allocator,
}
# The extras with games, of which one is made.
GAMES: dict[str, Callable[[], str]] = {"atari": _atari, "minatar": _minatar}
