"""Write metrics to TensorBoard."""

from typing import Any

from quantail.extras import require_extra
from quantail.stateful import State, require_keys
from quantail.training.callbacks import Callback
from quantail.training.loggers.numbers import evaluation_numbers, training_numbers
from quantail.training.progress import Progress


class TensorBoard(Callback):
    """Writes TensorBoard event files to the folder `tensorboard` of the run."""

    def __init__(self) -> None:
        require_extra("tensorboard", "the setting tensorboard")
        self._writer: Any = None  # opened for the first event
        self._steps = -1  # of the last event
        self._purge: int | None = None

    def on_log(self, progress: Progress) -> None:
        self._add(progress, training_numbers(progress))

    def on_evaluation(self, progress: Progress) -> None:
        self._add(progress, evaluation_numbers(progress))

    def on_close(self, progress: Progress) -> None:
        if self._writer is not None:
            self._writer.close()

    def _add(self, progress: Progress, values: dict[str, float]) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        if self._writer is None:
            folder = str(progress.run / "tensorboard")
            self._writer = SummaryWriter(folder, purge_step=self._purge)
        for name, value in values.items():
            self._writer.add_scalar(name, value, progress.steps)
        self._steps = progress.steps

    def state_dict(self) -> State:
        return {"steps": self._steps}

    def load_state_dict(self, state: State) -> None:
        """Hide the events that a killed session wrote after this checkpoint."""
        require_keys(state, ("steps",))
        self._steps = state["steps"]
        self._purge = self._steps + 1

    def check(self) -> None:
        if type(self._steps) is not int or self._steps < -1:
            raise ValueError("the step of its last event is not a step")
