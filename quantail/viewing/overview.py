"""One figure of a run: how it learned, and what it expects at a moment of a game."""

import csv
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray

from quantail.acting.agent import Agent
from quantail.envs import EnvSource, make
from quantail.risk import CVaR, midpoints
from quantail.training.run_folder import RunFolder
from quantail.training.train import load

LOOK_AT = 500  # steps of the episode
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def draw_overview(
    run: str | Path, file: str | Path, *, seed: int = 1, env: EnvSource | None = None
) -> None:
    """Draw the learning curve, and every action's quantile function where the choice matters most."""
    folder = RunFolder(run)
    agent = load(run)
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(9.5, 3.6), layout="constrained")
        curve, quantiles = figure.subplots(1, 2, width_ratios=(1, 1.15))
        _draw_curve(curve, folder)
        step, observation = _decisive_moment(agent, env or agent.env, seed)
        _draw_quantiles(quantiles, agent, observation, step)
        figure.savefig(file, dpi=160)


def _draw_curve(axes: Axes, folder: RunFolder) -> None:
    with folder.table("evaluations").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    def column(name: str, policy: str = "agent") -> NDArray[Any]:
        return np.array([float(row[name]) for row in rows if row["policy"] == policy])

    steps = column("steps")
    axes.fill_between(steps, column("q25"), column("q75"), color=COLOURS[0], alpha=0.2, lw=0)
    axes.plot(steps, column("mean"), color=COLOURS[0], marker="o", ms=3)
    random = column("mean", "random").mean()
    axes.axhline(random, color="0.5", ls=":")
    axes.annotate("random play", (steps[-1], random), ha="right", va="bottom", color="0.4")
    axes.set_ylim(bottom=min(0.0, random, float(column("q25").min())))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("steps (decisions of the agent)")
    axes.set_ylabel("raw return of an episode")
    episodes = rows[-1]["episodes"]
    axes.set_title(f"learning: mean and quartiles of {episodes} episodes", loc="left", fontsize=9)


def _draw_quantiles(axes: Axes, agent: Agent, observation: Any, step: int) -> None:
    taus = midpoints(200).numpy()
    curves = agent.quantiles(observation, taus)
    chosen, averse = agent.act(observation), agent.act(observation, CVaR(0.1))
    means = agent.values(observation)
    for action in range(agent.actions.count):
        number = action + agent.actions.start
        choosers = [name for name, best in (("mean", chosen), ("CVaR(0.1)", averse)) if best == number]
        label = f"action {number}, mean {means[action]:.2f}"
        if choosers:
            label += f": best by {' and '.join(choosers)}"
        axes.plot(taus, curves[:, action], color=COLOURS[action % len(COLOURS)], label=label)
    axes.set_xlabel("τ")
    axes.set_ylabel("discounted return $Z_τ(x, a)$")
    axes.set_title(f"what the agent expects at step {step} of a game", loc="left", fontsize=9)
    axes.legend(frameon=False, loc="best")


def _decisive_moment(agent: Agent, source: EnvSource, seed: int) -> tuple[int, Any]:
    """The step of an episode, and its observation, at which the actions' values differ most."""
    env = make(source, agent.settings)
    observation, _ = env.reset(seed=seed)
    most, found = -np.inf, (0, observation)
    for step in range(LOOK_AT):
        values = agent.values(observation)
        if np.ptp(values) > most:
            most, found = np.ptp(values), (step, observation)
        observation, _, terminated, truncated, _ = env.step(agent.act(observation))
        if terminated or truncated:
            break
    env.close()
    return found
