"""Write metrics to TensorBoard and Weights & Biases as well."""

import hashlib
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from quantail.errors import QuantailError
from quantail.extras import require_extra
from quantail.files import read_json
from quantail.settings import Settings


class Sink(Protocol):
    """A logger that receives metrics during a run."""

    def purge(self, steps: int) -> None:
        """Hide what a killed session wrote after this step."""

    def add(self, steps: int, group: str, values: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


def open_sinks(settings: Settings, run: Path) -> list[Sink]:
    """Return the loggers that the settings enable."""
    sinks: list[Sink] = []
    if settings.tensorboard:
        sinks.append(TensorBoard(run / "tensorboard"))
    if settings.wandb:
        sinks.append(WeightsAndBiases(settings, run))
    return sinks


def _numbers(group: str, values: Mapping[str, Any]) -> dict[str, float]:
    return {
        f"{group}/{name}": float(value)
        for name, value in values.items()
        if name != "steps" and not math.isnan(value)
    }


class TensorBoard:
    """Writes TensorBoard event files to the run folder."""

    def __init__(self, folder: Path) -> None:
        require_extra("tensorboard", "the setting tensorboard")
        from torch.utils.tensorboard.writer import SummaryWriter

        self._make: Any = partial(SummaryWriter, str(folder))
        self._writer: Any = None
        self._purge: int | None = None

    def purge(self, steps: int) -> None:
        """Hide what a killed session wrote after this step."""
        self._purge = steps + 1

    def add(self, steps: int, group: str, values: Mapping[str, Any]) -> None:
        if self._writer is None:
            self._writer = self._make(purge_step=self._purge)
        for name, value in _numbers(group, values).items():
            self._writer.add_scalar(name, value, steps)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class WeightsAndBiases:
    """Logs to a Weights & Biases run, which continues when this run is resumed.

    Configure it with the WANDB_* environment variables. Metrics that a killed session sent after its
    last checkpoint cannot be removed and are sent again.
    """

    def __init__(self, settings: Settings, run: Path) -> None:
        require_extra("wandb", "the setting wandb")
        import wandb

        identity = f"{run.name} {read_json(run / 'run.json')['created']}"
        try:
            self._run: Any = wandb.init(
                project=settings.wandb,
                name=run.name,
                id=hashlib.sha256(identity.encode()).hexdigest()[:16],
                resume="allow",
                dir=str(run),
                config=settings.to_dict(),
                settings=wandb.Settings(silent=True, console="off"),
            )
        except Exception as error:
            raise QuantailError(
                f"the wandb project {settings.wandb} cannot be opened: {str(error).rstrip('.')}. Set "
                "WANDB_MODE=offline to write to the run's folder only."
            ) from error
        self._run.define_metric("*", step_metric="steps")

    def purge(self, steps: int) -> None:
        pass

    def add(self, steps: int, group: str, values: Mapping[str, Any]) -> None:
        self._run.log({"steps": steps} | _numbers(group, values))

    def close(self) -> None:
        self._run.finish()
