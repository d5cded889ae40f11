"""Send metrics to Weights & Biases."""

import hashlib
from pathlib import Path
from typing import Any

from quantail.config import Config
from quantail.errors import QuantailError
from quantail.extras import require_extra
from quantail.files import read_json
from quantail.training.callbacks import Callback
from quantail.training.loggers.numbers import evaluation_numbers, training_numbers
from quantail.training.progress import Progress


class WeightsAndBiases(Callback):
    """Logs to a Weights & Biases run, which continues when this run is resumed.

    Configure it with the WANDB_* environment variables. Metrics that a killed session sent after its
    last checkpoint cannot be removed and are sent again.
    """

    def __init__(self, config: Config, run: Path) -> None:
        require_extra("wandb", "the setting wandb")
        import wandb

        identity = f"{run.name} {read_json(run / 'run.json')['created']}"
        try:
            self._run: Any = wandb.init(
                project=config.run.wandb,
                name=run.name,
                id=hashlib.sha256(identity.encode()).hexdigest()[:16],
                resume="allow",
                dir=str(run),
                config=config.to_dict(),
                settings=wandb.Settings(silent=True, console="off"),
            )
        except Exception as error:
            raise QuantailError(
                f"the wandb project {config.run.wandb} cannot be opened: {str(error).rstrip('.')}. Set "
                "WANDB_MODE=offline to write to the run's folder only."
            ) from error
        self._run.define_metric("*", step_metric="steps")
        self._ended = False

    def on_log(self, progress: Progress) -> None:
        self._run.log({"steps": progress.steps} | training_numbers(progress))

    def on_evaluation(self, progress: Progress) -> None:
        self._run.log({"steps": progress.steps} | evaluation_numbers(progress))

    def on_end(self, progress: Progress) -> None:
        self._ended = True

    def on_close(self, progress: Progress) -> None:
        """Finish the run, unless it failed: then wandb itself notes that when the process exits."""
        if self._ended:
            self._run.finish()
