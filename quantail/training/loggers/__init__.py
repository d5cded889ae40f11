"""Built-in callbacks: the progress bar, the tables of a run, TensorBoard and Weights & Biases."""

from quantail.config import Config
from quantail.runs.folder import RunFolder
from quantail.training.callbacks import Callback
from quantail.training.loggers.tables import CsvTables
from quantail.training.loggers.tensorboard import TensorBoard
from quantail.training.loggers.wandb import WeightsAndBiases


def open_loggers(config: Config, folder: RunFolder) -> dict[str, Callback]:
    """Return the loggers of a run by the names of their components; the tables are always written."""
    loggers: dict[str, Callback] = {"tables": CsvTables(folder)}
    if config.run.tensorboard:
        loggers["tensorboard"] = TensorBoard()
    if config.run.wandb:
        loggers["wandb"] = WeightsAndBiases(config, folder.path)
    return loggers
