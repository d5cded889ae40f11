"""Other places where metrics may go."""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any


class TensorBoard:
    """Event files beside the CSV tables, written on request."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        self._make: Any = partial(SummaryWriter, str(folder))
        self._writer: Any = None
        self._purge: int | None = None

    def purge(self, steps: int) -> None:
        """Hide what was written after this step by a session that was killed."""
        self._purge = steps + 1

    def add(self, steps: int, group: str, values: Mapping[str, Any]) -> None:
        if self._writer is None:
            self._writer = self._make(purge_step=self._purge)
        for name, value in values.items():
            if name != "steps" and not math.isnan(value):
                self._writer.add_scalar(f"{group}/{name}", value, steps)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
