"""A line on the terminal that tells how far an evaluation is."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from quantail.evaluation.evaluate import Watch
from quantail.training.progress import counted


@contextmanager
def told_on_the_terminal() -> Iterator[Watch]:
    """What `evaluate` takes as `watch`; without a terminal there is no line."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda episodes, steps: None
        return
    begun = time.monotonic()
    with console.status("playing") as line:

        def watch(episodes: int, steps: int) -> None:
            rate = steps / max(time.monotonic() - begun, 1e-9)
            line.update(f"{counted(episodes, 'episode')} done, {steps:,} steps, {rate:,.0f} a second")

        yield watch
