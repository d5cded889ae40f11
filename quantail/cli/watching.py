"""A progress line for evaluations on the terminal."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from quantail.evaluation.evaluate import Watch
from quantail.text import counted


@contextmanager
def evaluation_progress() -> Iterator[Watch]:
    """Yield the `watch` argument of `evaluate` that shows progress; silent without a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda episodes, steps: None
        return
    start = time.monotonic()
    with console.status("playing") as line:

        def watch(episodes: int, steps: int) -> None:
            rate = steps / max(time.monotonic() - start, 1e-9)
            line.update(f"{counted(episodes, 'episode')} done, {steps:,} steps, {rate:,.0f} steps/s")

        yield watch
