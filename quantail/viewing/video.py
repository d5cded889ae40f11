"""A video of an episode: the environment, and the predicted return distribution of every action."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quantail.agents.agent import Agent, Risk
from quantail.envs import EnvSource
from quantail.envs.adapt import Adapter
from quantail.errors import QuantailError
from quantail.extras import require_extra
from quantail.risk import RiskMeasure, parse_risk
from quantail.validation import whole_number
from quantail.viewing.frames import PIXELS, FrameRenderer
from quantail.viewing.pictures import picture_of, with_pictures
from quantail.viewing.scenes import Scene, make_scene
from quantail.viewing.style import styled

DEFAULT_MAX_FPS = 15  # decisions per second, if fps is not given
MAX_FPS = 120


@dataclass(frozen=True)
class Decision:
    """A decision of an episode, its step, and the score before it."""

    scene: Scene
    step: int
    score: float


@dataclass(frozen=True)
class VideoInfo:
    """The number of decisions in a video, and whether it shows the environment."""

    decisions: int
    pictured: bool


def make_video(
    agent: Agent,
    file: str | Path,
    env: EnvSource | None = None,
    *,
    steps: int = 300,
    seed: int = 1,
    fps: int | None = None,
    risk: Risk | None = None,
) -> VideoInfo:
    """Play an episode, or its first `steps`, and write it to an MP4 file with one frame per decision."""
    require_extra("video", "a video")
    import imageio_ffmpeg

    path = Path(file)
    steps, seed = whole_number("steps", steps, 1), whole_number("seed", seed, 0)
    fps = None if fps is None else whole_number("fps", fps, 1, MAX_FPS)
    measure = agent.risk if risk is None else parse_risk(risk)
    part = _part_of(path)
    try:
        with closing(with_pictures(env or agent.env, agent)) as played, styled():
            rate = fps or min(int(played.metadata.get("render_fps") or 10), DEFAULT_MAX_FPS)
            renderer = FrameRenderer(played.action_names(), measure, rate, played.name, played.legend())
            writer = imageio_ffmpeg.write_frames(
                str(part), PIXELS, fps=rate, macro_block_size=2, ffmpeg_log_level="quiet"
            )
            with closing(writer):
                writer.send(None)
                for one in play_decisions(agent, played, measure, steps, seed):
                    writer.send(np.ascontiguousarray(renderer.draw(one.scene, one.step, one.score)))
        if not part.stat().st_size:
            raise OSError("the encoder wrote nothing")
        part.replace(path)
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0]
        raise QuantailError(f"{path} cannot be written: {reason}.") from error
    finally:
        part.unlink(missing_ok=True)
    return VideoInfo(one.step + 1, one.scene.picture is not None)


def play_decisions(
    agent: Agent, env: Adapter, risk: RiskMeasure, steps: int, seed: int
) -> Iterator[Decision]:
    """Play an episode, or its first `steps`, and yield its decisions one by one."""
    observation, _ = env.reset(seed=seed)
    score = 0.0
    for step in range(steps):
        scene = make_scene(agent, observation, risk, picture_of(env), env.action_mask)
        yield Decision(scene, step, score)
        action = agent.actions.to_env(scene.chosen)
        observation, reward, terminated, truncated, _ = env.step(action)
        score += reward
        if terminated or truncated:
            return


def _part_of(path: Path) -> Path:
    """Create an empty file beside the requested one, or raise an error that says why it cannot be."""
    if path.suffix.lower() != ".mp4":
        raise QuantailError(f"out takes a file name that ends in .mp4, not {path.name}.")
    if not path.parent.is_dir():
        raise QuantailError(f"the folder {path.parent} does not exist: create it first.")
    if path.is_dir():
        raise QuantailError(f"{path} cannot be written: it is a folder.")
    part = path.with_name(f".{path.stem}.part.mp4")
    try:
        part.touch()
    except OSError as error:
        raise QuantailError(f"{path} cannot be written: {error.strerror}.") from error
    return part
