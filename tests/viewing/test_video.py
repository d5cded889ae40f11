import warnings
from dataclasses import replace
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quantail
from quantail.envs import make
from quantail.errors import QuantailError
from quantail.risk import CVaR, Neutral, parse_risk
from quantail.viewing.frames import FrameRenderer, SmoothRange
from quantail.viewing.pictures import with_pictures
from quantail.viewing.scenes import TAUS, Scene
from quantail.viewing.style import DARK, LIGHT, styled
from quantail.viewing.video import VideoInfo, make_video, play_decisions
from quantail.viewing.words import spread_labels
from tests.helpers.agents import agent
from tests.helpers.runs import command

imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")


def frames_of(path):
    reader = imageio_ffmpeg.read_frames(str(path))
    about = next(reader)
    width, height = about["size"]
    return about, [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]


def test_a_video_has_a_different_frame_for_each_decision(tmp_path):
    mine = agent("MinAtar/Breakout-v1", "minatar")
    info = make_video(mine, tmp_path / "game.mp4", steps=5, fps=5)
    about, frames = frames_of(tmp_path / "game.mp4")
    assert info == VideoInfo(5, pictured=True)
    assert len(frames) == 5
    assert about["fps"] == 5
    assert about["size"] == (960, 540)
    assert all(not np.array_equal(a, b) for a, b in pairwise(frames))
    assert [path.name for path in tmp_path.iterdir()] == ["game.mp4"]


def test_decisions_are_those_of_the_agent_under_the_risk_measure():
    mine = agent("MinAtar/Breakout-v1", "minatar")
    played = with_pictures("MinAtar/Breakout-v1", mine)
    env = make("MinAtar/Breakout-v1", mine.config.environment)
    observation, _ = env.reset(seed=2)
    score = 0.0
    decisions = list(play_decisions(mine, played, CVaR(0.1), 6, seed=2))
    assert [one.step for one in decisions] == list(range(6))
    for one in decisions:
        action = mine.act(observation, CVaR(0.1))
        assert one.scene.chosen == action
        assert one.scene.values == pytest.approx(mine.values(observation, CVaR(0.1)))
        assert one.scene.means == pytest.approx(mine.values(observation, Neutral()))
        expected = np.sort(mine.quantiles(observation, TAUS), axis=0)
        assert one.scene.distribution == pytest.approx(expected)
        assert one.score == score
        observation, reward, *_ = env.step(action)
        score += reward


def test_an_episode_is_played_lazily():
    """A long episode takes no more memory than a short one."""
    mine = agent()
    env = with_pictures("CartPole-v1", mine)
    decisions = play_decisions(mine, env, Neutral(), 10**9, seed=0)
    next(decisions)
    before = env.unwrapped.state
    next(decisions)
    assert not np.array_equal(env.unwrapped.state, before)


def scene(chosen, seed, picture=True):
    """A scene with three actions, under a measure that is not the mean."""
    rng = np.random.default_rng(seed)
    distribution = np.sort(rng.normal(size=(100, 3)), axis=0)
    values = np.full(3, -2.0) + 0.1 * rng.random(3)
    values[chosen] = -1.0
    shown = rng.integers(255, size=(8, 8, 3), dtype=np.uint8)
    return Scene(shown if picture else None, distribution, distribution.mean(axis=0), values, chosen)


def test_every_frame_shows_its_own_scene():
    renderer = FrameRenderer(["stay", "left", "right"], CVaR(0.1), 10, "a game", "blue: the sea")
    for step, (chosen, score) in enumerate(((1, 0.0), (2, 3.0), (0, 3.5))):
        now = scene(chosen, seed=step)
        renderer.draw(now, step, score)
        widths = [line.get_linewidth() for line in renderer.lines]
        assert int(np.argmax(widths)) == chosen
        assert sorted(widths)[1] < 0.5 * max(widths)
        for action, (mean, value, leader) in enumerate(renderer.marks):
            assert renderer.lines[action].get_ydata() == pytest.approx(now.distribution[:, action])
            assert mean.get_ydata() == pytest.approx([now.means[action]])
            assert value.get_ydata() == pytest.approx([now.values[action]])
            assert leader.get_ydata()[0] == pytest.approx(now.values[action])
            assert renderer.labels[action].get_text().startswith(renderer.names[action])
            assert (renderer.labels[action].get_fontweight() == "bold") == (action == chosen)
        assert np.array_equal(renderer.image.get_array(), now.picture)
        assert renderer.axes.get_title() == (
            f"chooses “{renderer.names[chosen]}”: highest value under cvar:0.1, -1.00"
        )
        assert renderer.headline.get_text() == f"step {step}, score {score:g}"
    assert renderer.picture_axes.get_xlabel() == "blue: the sea"


def test_overlapping_lines_are_all_visible():
    renderer = FrameRenderer(["a", "b", "c"], Neutral(), 10, "a game")
    one = np.linspace(-1.0, 1.0, 100)
    flat = Scene(None, np.stack([one] * 3, axis=1), np.zeros(3), np.zeros(3), 0)
    frame = renderer.draw(flat, 0, 0.0)
    for ink in LIGHT.series[:3]:
        expected = np.array([int(ink[at : at + 2], 16) for at in (1, 3, 5)])
        plotted = frame[30:400, 460:760].reshape(-1, 3).astype(int)
        assert (np.abs(plotted - expected).max(axis=1) < 30).sum() > 100, ink


def test_the_weights_of_the_measure_have_axes_of_their_own_below_the_quantile_functions():
    renderer = FrameRenderer(["a", "b", "c"], CVaR(0.25), 10, "a game")
    renderer.draw(scene(0, 0), 0, 0.0)
    assert not renderer.axes.patches
    weights = renderer.weights.patches[0].get_data().values
    assert weights[:25] == pytest.approx(4)
    assert weights[25:] == pytest.approx(0)
    above, strip = renderer.axes.get_position(), renderer.weights.get_position()
    assert strip.y1 < above.y0
    assert (strip.x0, strip.x1) == pytest.approx((above.x0, above.x1))


def test_a_measure_that_does_not_weight_tau_has_a_strip_that_says_so():
    renderer = FrameRenderer(["a", "b", "c"], parse_risk("entropic:-1"), 10, "a game")
    renderer.draw(scene(0, 0), 0, 0.0)
    assert [text.get_text() for text in renderer.weights.texts] == ["entropic:-1 does not weight τ"]


def test_quantiles_are_sorted_in_the_frame_which_says_how_many_crossed():
    renderer = FrameRenderer(["a", "b", "c"], CVaR(0.25), 10, "a game")
    for crossing, said in (
        (0.234, "sorted: 23 %"),
        (0.001, "sorted: less than 1 %"),
        (0, ""),
        (None, ""),
    ):
        renderer.draw(replace(scene(0, 0), crossing=crossing), 0, 0.0)
        explained = renderer.weights.get_xlabel()
        assert said in explained
        assert ("neighbouring quantiles crossed" in explained) == bool(said)
    mine = agent()
    env = with_pictures("CartPole-v1", mine)
    for one in play_decisions(mine, env, Neutral(), 3, seed=0):
        assert one.scene.crossing > 0
        assert (np.diff(one.scene.distribution, axis=0) >= 0).all()


@pytest.mark.parametrize("size", [(400, 600), (80, 80), (210, 160), (64, 96)])
def test_the_picture_and_the_densities_fill_the_left_side(size):
    shown = scene(0, 0)
    shown = replace(shown, picture=np.zeros((*size, 3), np.uint8))
    renderer = FrameRenderer(["a", "b", "c"], CVaR(0.25), 10, "a game")
    renderer.draw(shown, 0, 0.0)
    game, density = renderer.picture_axes.get_position(), renderer.density.get_position()
    assert density.y1 < game.y0
    assert game.height + density.height > 0.6
    assert renderer.density.get_ylabel() == "density"
    assert len(renderer.density.get_yticks()) > 1


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("count", [2, 6, 18])
def test_nothing_is_cut_off_in_a_frame(count, dark):
    rng = np.random.default_rng(0)
    distribution = np.sort(rng.normal(size=(100, count)), axis=0) - 100
    values = rng.normal(size=count) - 100
    shown = Scene(np.zeros((80, 80, 3), np.uint8), distribution, values, values, 1)
    names = [f"upright fire {action}" for action in range(count)]
    with styled(dark):
        renderer = FrameRenderer(names, CVaR(0.1), 10, "a game", "blue: the walker; red: the cliff")
        frame = renderer.draw(shown, 3, 1.0)
    for artist in (*renderer.labels, renderer.weights.xaxis.label, renderer.axes._left_title):
        box = artist.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= 960, artist
        assert 0 <= box.y0 < box.y1 <= 540, artist
    ground = (DARK if dark else LIGHT).ground
    assert frame[0, 0].tolist() == [int(ground[at : at + 2], 16) for at in (1, 3, 5)]


def test_the_range_widens_at_once_and_narrows_slowly():
    smooth = SmoothRange(frames=10)
    low, high = smooth.update(0.0, 1.0)
    assert low < 0 < 1 < high
    assert smooth.update(-5.0, 1.0)[0] < -5
    after = [smooth.update(0.0, 1.0)[0] for _ in range(60)]
    assert after[0] < -4
    assert after[-1] == pytest.approx(low, abs=0.05)


@given(
    st.lists(st.floats(-10, 10), min_size=1, max_size=18),
)
def test_labels_do_not_overlap_and_keep_their_order(values):
    gap = 20 / 18
    places = spread_labels(np.array(values), gap, -10.0, 10.0)
    order = np.argsort(values, kind="stable")
    assert (np.diff(places[order]) >= gap - 1e-9).all()
    assert places.min() >= -10
    assert places.max() <= 10 + 1e-9


def test_labels_that_fit_stay_at_their_values():
    values = np.array([3.0, -2.0, 0.5])
    assert spread_labels(values, 0.5, -10.0, 10.0) == pytest.approx(values)


class WithoutRenderer(gym.Env):
    """An environment that renders nothing."""

    observation_space = gym.spaces.Box(-1, 1, (4,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(4, np.float32), {}

    def step(self, action):
        return np.full(4, 0.1, np.float32), 1.0, False, False, {}


def test_without_a_picture_the_video_shows_only_the_distributions_and_says_so(tmp_path, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        info = make_video(agent(), tmp_path / "a.mp4", WithoutRenderer, steps=3)
    assert info == VideoInfo(3, pictured=False)
    assert capfd.readouterr().err == ""
    renderer = FrameRenderer(["a", "b", "c"], Neutral(), 10, "Blind-v0")
    assert renderer.draw(scene(0, 0, picture=False), 7, 2.5).shape == (540, 960, 3)
    assert renderer.headline.get_text() == "step 7, score 2.5; Blind-v0 renders no picture"


def test_the_command_says_that_there_is_no_picture(cartpoles, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("quantail.viewing.video.picture_of", lambda env: None)
    assert command("video", cartpoles / "iqn-0", "--out", tmp_path / "a.mp4", "--steps", 2) == 0
    output = capfd.readouterr()
    assert "cannot be rendered" in output.out
    assert output.err == ""


def test_the_environment_is_closed_even_after_an_error(tmp_path, monkeypatch):
    closed = []
    monkeypatch.setattr(WithoutRenderer, "close", lambda self: closed.append(self))
    monkeypatch.setattr(WithoutRenderer, "step", lambda self, action: 1 / 0)
    with pytest.raises(QuantailError, match="ZeroDivisionError"):
        make_video(agent(), tmp_path / "a.mp4", WithoutRenderer, steps=3)
    assert closed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": 0}, "steps takes a whole number of at least 1, not 0"),
        ({"steps": 2.5}, "steps takes a whole number"),
        ({"seed": -1}, "seed takes a whole number of at least 0, not -1"),
        ({"fps": 100_000}, "fps takes a whole number from 1 to 120, not 100000"),
        ({"fps": 0}, "fps takes a whole number from 1 to 120, not 0"),
    ],
)
def test_invalid_arguments_raise_a_clear_error(tmp_path, changes, said):
    with pytest.raises(QuantailError, match=said):
        make_video(agent(), tmp_path / "a.mp4", **changes)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_named(tmp_path, capfd, monkeypatch):
    (tmp_path / "folder.mp4").mkdir()
    with pytest.raises(QuantailError, match=r"/folder.mp4 cannot be written: it is a folder\.$"):
        make_video(agent(), tmp_path / "folder.mp4", steps=1)

    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.touch", refuse)
        with pytest.raises(QuantailError, match=r"/a.mp4 cannot be written: Permission denied\.$"):
            make_video(agent(), tmp_path / "a.mp4", steps=1)
    # An encoder error, such as a full disk, is reported in the same way.
    monkeypatch.setattr(imageio_ffmpeg, "write_frames", failing_encoder)
    with pytest.raises(QuantailError, match=r"/a.mp4 cannot be written: No space left\.$"):
        make_video(agent(), tmp_path / "a.mp4", steps=1)
    assert capfd.readouterr().err == ""
    assert [path.name for path in tmp_path.iterdir()] == ["folder.mp4"]


def failing_encoder(*args, **kwargs):
    yield
    raise OSError(28, "No space left")


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
    assert quantail.make(env).action_names() == names


def test_the_command_writes_a_video_or_explains_the_error(cartpoles, tmp_path, capsys):
    run = cartpoles / "iqn-0"
    assert command("video", run, "--out", tmp_path / "a.mp4", "--steps", 3, "--risk", "cvar:0.1") == 0
    assert "3 decisions of the checkpoint at 200 steps, under cvar:0.1, in " in capsys.readouterr().out
    for words, said in (
        (("--out", tmp_path / "a.gif"), "ends in .mp4"),
        (("--out", tmp_path / "no" / "a.mp4"), "create it first"),
        (("--out", tmp_path / "a.mp4", "--steps", 0), "steps takes a whole number"),
        (("--out", tmp_path / "a.mp4", "--fps", 100_000), "fps takes a whole number from 1 to 120"),
    ):
        assert command("video", run, *words) == 2
        assert said in capsys.readouterr().err


def test_a_missing_encoder_is_named(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(QuantailError, match=r"quantail\[video\]"):
        make_video(agent(), tmp_path / "a.mp4", steps=1)
