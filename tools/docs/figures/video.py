"""A frame of a video: an agent that was trained for the mean walks the windy cliff under CVaR(0.1)."""

from pathlib import Path

from PIL import Image

import quantail
from quantail.risk import parse_risk
from quantail.viewing.frames import FrameRenderer
from quantail.viewing.pictures import with_pictures
from quantail.viewing.style import styled
from quantail.viewing.video import play_decisions
from tools.docs.figures import _runs


def draw(folder: Path, dark: bool) -> None:
    agent, risk = quantail.load(_runs.world("WindyCliff", 20_000)), parse_risk("cvar:0.1")
    with styled(dark):
        env = with_pictures(agent.env, agent)
        names = env.action_names()
        renderer = FrameRenderer(names, risk, env.metadata["render_fps"], env.name, env.legend())
        first = next(play_decisions(agent, env, risk, steps=1, seed=1))
        frame = renderer.draw(first.scene, first.step, first.score)
        env.close()
    Image.fromarray(frame).save(folder / f"video{'-dark' * dark}.png", optimize=True)
