"""What the loggers of other tools are given."""

import math
from collections.abc import Mapping
from typing import Any

from quantail.training.progress import Progress

EVALUATION = ("mean", "value", "min", "median", "max")


def training_numbers(progress: Progress) -> dict[str, float]:
    """Return the last row of metrics as `training/NAME`."""
    return _numbers("training", progress.metrics)


def evaluation_numbers(progress: Progress) -> dict[str, float]:
    """Return the last evaluation as `evaluation/NAME`."""
    assert progress.evaluation is not None
    row = progress.evaluation.to_dict()
    return _numbers("evaluation", {key: row[key] for key in EVALUATION})


def _numbers(group: str, values: Mapping[str, Any]) -> dict[str, float]:
    return {
        f"{group}/{name}": float(value)
        for name, value in values.items()
        if name != "steps" and not math.isnan(value)
    }
