"""A video of a game beside what the agent expects of every action."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.typing import NDArray

from quantail.acting.agent import Agent, Risk
from quantail.envs import EnvSource
from quantail.envs.names import action_names
from quantail.errors import QuantailError
from quantail.risk import RiskMeasure, parse_risk
from quantail.viewing.moments import picture_of, with_pictures
from quantail.viewing.scenes import TAUS, Scene, look
from quantail.viewing.style import colour, new_figure, styled

SIZE = (9.6, 5.4)  # inches, at 100 dots each


def make_video(
    agent: Agent,
    file: str | Path,
    env: EnvSource | None = None,
    *,
    steps: int = 300,
    seed: int = 1,
    fps: int | None = None,
    risk: Risk | None = None,
) -> int:
    """Play an episode, or its first steps, into an MP4 file; the number of frames."""
    path = Path(file)
    if path.suffix.lower() != ".mp4":
        raise QuantailError(f"out takes a file that ends in .mp4, not {path.name}.")
    if not path.parent.is_dir():
        raise QuantailError(f"there is no folder {path.parent} to write into: make it first.")
    ffmpeg = _ffmpeg()
    measure = agent.risk if risk is None else parse_risk(risk)
    scenes, scores, names, rate = play_scenes(agent, env or agent.env, measure, steps, seed)
    size = (round(SIZE[0] * 100), round(SIZE[1] * 100))
    part = path.with_name(f".{path.stem}.part.mp4")
    try:
        writer = ffmpeg.write_frames(str(part), size, fps=fps or rate, macro_block_size=2)
        writer.send(None)
        with styled():
            for frame in draw_scenes(scenes, scores, names, measure):
                writer.send(np.ascontiguousarray(frame))
        writer.close()
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return len(scenes)


def play_scenes(
    agent: Agent, env: EnvSource, risk: RiskMeasure, steps: int, seed: int
) -> tuple[list[Scene], list[float], list[str], int]:
    """The decisions of an episode, the score before each, the actions' names, and a good rate."""
    played = with_pictures(env, agent)
    names = action_names(played)
    observation, _ = played.reset(seed=seed)
    scenes: list[Scene] = []
    scores = [0.0]
    over = False
    while not over and len(scenes) < steps:
        scenes.append(look(agent, observation, risk, picture_of(played)))
        action = scenes[-1].chosen + agent.actions.start
        observation, reward, terminated, truncated, _ = played.step(action)
        scores.append(scores[-1] + reward)
        over = terminated or truncated
    rate = int(played.metadata.get("render_fps") or 10)
    played.close()
    return scenes, scores, names, min(rate, 15)


def draw_scenes(
    scenes: list[Scene], scores: list[float], names: list[str], risk: RiskMeasure
) -> Iterator[NDArray[np.uint8]]:
    """RGB pictures, one for each scene, on axes that stay where they are."""
    figure = new_figure(*SIZE)
    canvas: Any = FigureCanvasAgg(figure)
    figure.set_dpi(100)
    axes: Any
    shown: Any = None
    if scenes[0].picture is not None:
        shown, axes = figure.subplots(1, 2, width_ratios=(1, 1.35))
        shown.set_axis_off()
        image = shown.imshow(scenes[0].picture, interpolation="nearest")
    else:
        axes = figure.subplots()
    lines = [
        axes.plot(TAUS, scenes[0].law[:, a], color=colour(a), label=name)[0]
        for a, name in enumerate(names)
    ]
    mark = axes.axhline(0, color="k", lw=1, ls=":")
    low, high = (float(pick([pick(scene.law) for scene in scenes])) for pick in (np.min, np.max))
    room = 0.05 * max(high - low, 1e-6)
    axes.set(xlim=(0, 1), ylim=(low - room, high + room), xlabel="τ: from bad luck to good luck")
    axes.set_ylabel("discounted return that the agent expects")
    for step, scene in enumerate(scenes):
        if shown is not None and scene.picture is not None:
            image.set_data(scene.picture)
            shown.set_title(f"step {step}, score {scores[step]:g}", loc="left")
        for action, line in enumerate(lines):
            best = action == scene.chosen
            line.set_ydata(scene.law[:, action])
            line.set(linewidth=3.0 if best else 1.2, alpha=1.0 if best else 0.6, zorder=3 if best else 2)
            line.set_label(
                f"{names[action]}: mean {scene.means[action]:.2f}{'  ← chosen' if best else ''}"
            )
        mark.set_ydata([scene.values[scene.chosen]] * 2)
        axes.set_title(
            f"chosen by {risk}: {names[scene.chosen]}, valued {scene.values[scene.chosen]:.2f} (dotted)"
        )
        axes.legend(loc="lower right", fontsize=8, ncols=1 if len(names) <= 6 else 2)
        canvas.draw()
        yield np.asarray(canvas.buffer_rgba())[:, :, :3]


def _ffmpeg() -> Any:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise QuantailError(
            f"video takes imageio-ffmpeg: pip install 'quantail[video]' ({error})."
        ) from error
    return imageio_ffmpeg
