"""Measure how much time a run spends in each phase."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from quantail.stateful import State, require_keys, require_numbers

PHASES = ("acting", "environment", "replay", "learning", "evaluation", "files")


class Clock:
    """Seconds spent in each phase of a run, over all of its sessions."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - begin

    def state_dict(self) -> dict[str, float]:
        return dict(self.seconds)

    def load_state_dict(self, state: State) -> None:
        require_keys(state, PHASES)
        self.seconds = dict(state)

    def check(self) -> None:
        require_numbers(self.seconds.values())

    @property
    def training_seconds(self) -> float:
        """The time in all phases except evaluation."""
        return sum(self.seconds.values()) - self.seconds["evaluation"]
