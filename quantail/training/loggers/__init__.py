"""Built-in callbacks: the progress bar, the tables of a run, TensorBoard and Weights & Biases."""

from quantail.runs.folder import RunFolder
from quantail.settings import Settings
from quantail.training.callbacks import Callback
from quantail.training.loggers.tables import CsvTables
from quantail.training.loggers.tensorboard import TensorBoard
from quantail.training.loggers.wandb import WeightsAndBiases


def open_loggers(settings: Settings, folder: RunFolder) -> dict[str, Callback]:
    """Return the loggers of a run by the names of their components; the tables are always written."""
    loggers: dict[str, Callback] = {"tables": CsvTables(folder)}
    if settings.tensorboard:
        loggers["tensorboard"] = TensorBoard()
    if settings.wandb:
        loggers["wandb"] = WeightsAndBiases(settings, folder.path)
    return loggers
