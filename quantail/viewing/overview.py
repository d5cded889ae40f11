"""One figure of a run: its learning curve and its predicted returns at one moment of an episode."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quantail.envs import EnvSource
from quantail.extras import require_extra
from quantail.runs.history import History, read_history
from quantail.training.train import load
from quantail.trust import Trust
from quantail.viewing.figures import draw_quantiles
from quantail.viewing.moments import find_moments
from quantail.viewing.seeds import draw_random
from quantail.viewing.style import colour, count_axis, new_figure, styled
from quantail.viewing.words import place_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_overview(
    run: str | Path,
    file: str | Path,
    *,
    seed: int = 1,
    env: EnvSource | None = None,
    trust: Trust = (),
    dark: bool = False,
) -> None:
    """Draw the learning curve, and every action's quantile function at the most decisive moment.

    `trust` lists the modules that may be imported if the run names them.
    """
    require_extra("plots", "a figure")  # before an episode is played
    agent = load(run, trust=trust)
    moments = find_moments(agent, env, seed=seed)
    decisive = next(moment for moment in moments if "differ" in moment.why)
    with styled(dark):
        figure = new_figure(9.5, 3.4)
        curve, quantiles = figure.subplots(1, 2, width_ratios=(1, 1.15))
        _draw_curve(curve, read_history(run))
        note = draw_quantiles(quantiles, agent, decisive)
        quantiles.set_title(f"predicted returns at step {decisive.step} of an episode")
        place_legend(figure, note=note)
        figure.savefig(file, dpi=160)


def _draw_curve(axes: Axes, history: History) -> None:
    curve, random = history.curve, history.random
    steps = curve["steps"]
    axes.fill_between(steps, curve["q25"], curve["q75"], color=colour(0), alpha=0.2, lw=0)
    axes.plot(steps, curve["mean"], color=colour(0), marker="o", ms=3)
    draw_random(axes, random)
    axes.set_ylim(bottom=float(np.nanmin([0.0, random, np.min(curve["q25"])])))
    count_axis(axes, history.info.frames_per_step)
    axes.set_ylabel("raw episode return")
    axes.set_title("learning curve: mean and quartiles of each evaluation")
