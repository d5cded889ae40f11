"""The learning curves of a section: one panel for each environment, one line for each agent."""

from pathlib import Path
from typing import Any

import numpy as np

from quantail.viewing.seeds import INTERVAL_NOTE, draw_mean, draw_random
from quantail.viewing.studies.curves import at_common_steps
from quantail.viewing.style import count_axis, line_style, new_figure, styled
from quantail.viewing.words import place_legend
from tools.results.sections import Section
from tools.results.tables import name


def draw_curves(section: Section, path: Path) -> None:
    """Draw the mean return in evaluations during training, with its interval over seeds, as PNG.

    Environments without a finished run have no panel yet.
    """
    envs = [env for env in section.envs if any(section.of(env, agent) for agent in section.agents)]
    with styled():
        wide = min(3, len(envs))
        tall = -(-len(envs) // wide)
        figure = new_figure(max(5.2, 3.0 * wide), 2.2 * tall + 0.4)
        panels = figure.subplots(tall, wide, squeeze=False)
        for agent in section.agents:
            panels[0, 0].plot([], [], lw=1.8, label=agent, **_style(section, agent))
        for index, env in enumerate(envs):
            _panel(panels[index // wide, index % wide], section, env)
        for index in range(len(envs), wide * tall):
            panels[index // wide, index % wide].set_axis_off()
        for row in panels:
            row[0].set_ylabel("mean return")
        several = any(len(section.of(e, a)) > 1 for e in envs for a in section.agents)
        place_legend(figure, note=INTERVAL_NOTE if several else "")
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
        draw_mean(axes, steps, means, lw=1.5, **_style(section, agent))
    draw_random(axes, section.random(env))
    axes.set_title(name(env))
    count_axis(axes, 1)


def _style(section: Section, agent: str) -> dict[str, Any]:
    """Return the colour and the dashes of an agent, which stay the same when other agents are added."""
    return line_style(section.planned_agents.index(agent))
