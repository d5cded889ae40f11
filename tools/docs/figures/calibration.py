"""The calibration of two runs: one that has learned its world, and one that has just begun to learn."""

from functools import cache
from pathlib import Path

import quantail
from quantail.evaluation.calibration import Calibration, calibrate
from quantail.viewing.calibration import HEIGHT, WIDTH, draw_calibration
from quantail.viewing.style import new_figure, styled
from tools.docs.figures import _runs


@cache
def calibrations() -> list[Calibration]:
    """Return the calibrations of both runs, at their last checkpoints."""
    runs = ((_runs.world("Chain", 40_000), 300), (_runs.cartpole("iqn", 0), 30))
    return [calibrate(quantail.load(run, "last"), episodes=n, states=0, seed=1) for run, n in runs]


def draw(folder: Path, dark: bool) -> None:
    with styled(dark):
        figure = new_figure(WIDTH, 2 * (HEIGHT + 0.15))
        for part, found in zip(figure.subfigures(2, 1), calibrations(), strict=True):
            draw_calibration(part, found)
        figure.savefig(folder / f"calibration{'-dark' * dark}.png", dpi=150)
