from itertools import pairwise

import numpy as np
import pytest
from runs import command
from test_evaluate import agent

from quantail.envs import make
from quantail.envs.names import action_names
from quantail.errors import QuantailError
from quantail.risk import CVaR, Neutral
from quantail.viewing.video import draw_scenes, make_video, play_scenes

imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")


def frames_of(path):
    reader = imageio_ffmpeg.read_frames(str(path))
    about = next(reader)
    width, height = about["size"]
    return about, [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]


def test_a_video_has_a_frame_for_each_decision_and_each_is_another(tmp_path):
    mine = agent("MinAtar/Breakout-v1", "minatar")
    count = make_video(mine, tmp_path / "game.mp4", steps=8, fps=5)
    about, frames = frames_of(tmp_path / "game.mp4")
    assert count == len(frames) == 8
    assert about["fps"] == 5
    assert about["size"] == (960, 540)
    assert all(not np.array_equal(a, b) for a, b in pairwise(frames))
    assert [path.name for path in tmp_path.iterdir()] == ["game.mp4"]


def test_scenes_are_the_agent_s_own_decisions_under_the_measure():
    mine = agent("MinAtar/Breakout-v1", "minatar")
    scenes, scores, names, _ = play_scenes(mine, "MinAtar/Breakout-v1", CVaR(0.1), 6, seed=2)
    env = make("MinAtar/Breakout-v1", mine.settings)
    observation, _ = env.reset(seed=2)
    score = 0.0
    for scene, before in zip(scenes, scores[:-1], strict=True):
        action = mine.act(observation, CVaR(0.1))
        assert scene.chosen == action
        assert scene.values == pytest.approx(mine.values(observation, CVaR(0.1)))
        assert scene.means == pytest.approx(mine.values(observation, Neutral()))
        assert before == score
        observation, reward, *_ = env.step(action)
        score += reward
    assert names == ["nothing", "left", "right"]


def test_an_environment_without_a_picture_has_the_distributions_alone():
    mine = agent()
    scenes, scores, names, _ = play_scenes(mine, "CartPole-v1", Neutral(), 2, seed=0)
    blind = [type(scene)(**vars(scene) | {"picture": None}) for scene in scenes]
    pictures = [frame.copy() for frame in draw_scenes(blind, scores, names, Neutral())]
    assert len(pictures) == 2
    assert pictures[0].shape == (540, 960, 3)


@pytest.mark.parametrize(
    ("env", "names"),
    [
        ("ALE/Breakout-v5", ["noop", "fire", "right", "left"]),
        ("MinAtar/Breakout-v1", ["nothing", "left", "right"]),
        ("Quantail/WindyCliff-v0", ["on", "up", "down"]),
        ("CartPole-v1", ["action 0", "action 1"]),
    ],
)
def test_actions_have_the_names_that_the_environment_gives_them(env, names):
    assert action_names(make(env)) == names


def test_the_command_writes_a_video_or_says_why_not(cartpoles, tmp_path, capsys):
    run = cartpoles / "iqn-0"
    assert command("video", run, "--out", tmp_path / "a.mp4", "--steps", 3, "--risk", "cvar:0.1") == 0
    assert "3 decisions" in capsys.readouterr().out
    for words, said in (
        (("--out", tmp_path / "a.gif"), "ends in .mp4"),
        (("--out", tmp_path / "no" / "a.mp4"), "make it first"),
        (("--out", tmp_path / "a.mp4", "--steps", 0), "steps takes a whole number"),
    ):
        assert command("video", run, *words) == 2
        assert said in capsys.readouterr().err


def test_without_the_encoder_there_is_one_sentence(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(QuantailError, match=r"quantail\[video\]"):
        make_video(agent(), tmp_path / "a.mp4", steps=1)
