"""The learning curves of a section: one panel a game, one line an agent."""

from pathlib import Path

import numpy as np

from quantail.evaluation.intervals import mean_intervals
from quantail.viewing.studies.curves import at_common_steps
from quantail.viewing.style import colour, count_axis, new_figure, styled
from tools.results.sections import Section
from tools.results.tables import name

DASHES = ("-", "--", ":", "-.")
COLOURS = 7


def draw_curves(section: Section, path: Path) -> None:
    """Draw the mean return in evaluations during training, with its interval over seeds, as PNG."""
    with styled():
        wide = min(3, len(section.envs))
        tall = -(-len(section.envs) // wide)
        figure = new_figure(max(5.2, 3.4 * wide), 2.5 * tall + 0.6)
        panels = figure.subplots(tall, wide, squeeze=False)
        for index, env in enumerate(section.envs):
            _panel(panels[index // wide, index % wide], section, env)
        for index in range(len(section.envs), wide * tall):
            panels[index // wide, index % wide].set_axis_off()
        for row in panels:
            row[0].set_ylabel("mean return")
        for agent in section.agents:
            panels[0, 0].plot([], [], lw=1.8, label=agent, **_style(section, agent))
        figure.legend(loc="outside lower center", ncols=min(6, len(section.agents)), fontsize=9)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130, metadata={"Software": None})


def _panel(axes, section: Section, env: str) -> None:
    for agent in section.agents:
        curves = [section.curves[row.id] for row in section.of(env, agent)]
        lines = [
            (np.array([float(p.steps) for p in curve]), np.array([p.mean for p in curve]))
            for curve in curves
            if curve
        ]
        if not lines:
            continue
        steps, means = at_common_steps(lines)
        axes.plot(steps, means.mean(axis=0), lw=1.5, **_style(section, agent))
        if len(means) > 1:
            low, high = mean_intervals(means)
            axes.fill_between(steps, low, high, color=_style(section, agent)["color"], alpha=0.15, lw=0)
    random = section.random(env)
    if np.isfinite(random):
        axes.axhline(random, color="0.5", ls=":", lw=1)
    axes.set_title(name(env))
    count_axis(axes, 1)
    axes.set_xlabel("steps")


def _style(section: Section, agent: str) -> dict[str, str]:
    """Return the colour and the dashes of an agent, which stay the same as other agents come in."""
    index = section.planned_agents.index(agent)
    return {"color": colour(index), "ls": DASHES[index // COLOURS % len(DASHES)]}
