"""The calibration of two runs in the world Chain, one trained for long enough and one not."""

from functools import cache
from pathlib import Path

import quantail
from quantail.evaluation.calibration import Calibration, calibrate
from quantail.viewing.calibration import HEIGHT, WIDTH, draw_calibration
from quantail.viewing.style import new_figure, styled
from tools.docs.figures import _runs

STEPS = (20_000, 2_000)


@cache
def calibration(steps: int) -> Calibration:
    """Return the calibration of the run with this many steps."""
    agent = quantail.load(_runs.world("Chain", steps), "last")
    return calibrate(agent, episodes=100, states=0, seed=1)


def draw(folder: Path, dark: bool) -> None:
    with styled(dark):
        figure = new_figure(WIDTH, len(STEPS) * (HEIGHT + 0.15))
        for part, steps in zip(figure.subfigures(len(STEPS), 1), STEPS, strict=True):
            draw_calibration(part, calibration(steps))
        figure.savefig(folder / f"calibration{'-dark' * dark}.png", dpi=150)
