"""Stop a run cleanly on Ctrl-C or SIGTERM."""

import signal
import threading
from types import FrameType
from typing import Any


class StopSignals:
    """Context manager that records the first Ctrl-C or SIGTERM; a second one interrupts at once.

    Only the main thread receives signals, so in any other thread this does nothing.
    """

    def __init__(self) -> None:
        self.name = ""  # of the signal that was received
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._record)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def raise_signal(self) -> None:
        """Raise what the signal would have raised, now that everything is saved."""
        if self.name == "SIGTERM":
            raise SystemExit(128 + signal.SIGTERM)
        if self.name:
            raise KeyboardInterrupt

    def _record(self, number: int, _frame: FrameType | None) -> None:
        if self.name:
            raise KeyboardInterrupt
        self.name = signal.Signals(number).name
