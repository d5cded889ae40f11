import os
import signal
import sys

import ale_py
import gymnasium as gym
import numpy as np
import pytest

from quantail.cli import play as command
from quantail.envs.ale.family import console_action
from quantail.envs.make import player_conditions
from quantail.errors import QuantailError
from quantail.evaluation.starts import Recording, played_marks, read_recording
from quantail.viewing.window import Play
from tests.helpers.runs import quantail

pygame = pytest.importorskip("pygame")

ALE, MINATAR = "ALE/Breakout-v5", "MinAtar/Breakout-v1"
CONSOLE = [ale_py.Action(number).name for number in range(18)]


@pytest.fixture(autouse=True)
def _no_screen(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield
    pygame.quit()


def down(*names):
    for name in names:
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.key.key_code(name)))


def up(*names):
    for name in names:
        pygame.event.post(pygame.event.Event(pygame.KEYUP, key=pygame.key.key_code(name)))


def opened(env, file, **options):
    return Play(env, file, command.recording_at(file, env), **options)


def turns(play, count):
    assert all(play.advance() for _ in range(count))


def held(play, name, count):
    """Hold a key for `count` actions."""
    down(name)
    turns(play, count)
    up(name)


def timed(monkeypatch, *keys):
    """Press these keys in the next window, one every 20 turns."""
    left, advance, count = list(keys), Play.advance, iter(range(10**6))

    def pressing(play):
        if next(count) % 20 == 0 and left:
            down(left.pop(0))
        return advance(play)

    monkeypatch.setattr(Play, "advance", pressing)


@pytest.mark.parametrize("name", CONSOLE)
def test_each_ale_action_has_its_keys(name):
    parts = {"UP": ("up", "w"), "DOWN": ("down", "s"), "LEFT": ("left", "a"), "RIGHT": ("right", "d")}
    for kind in (0, 1):
        keys = [key[kind] for part, key in parts.items() if part in name]
        keys += ["space"] if "FIRE" in name else []
        assert console_action(keys) == CONSOLE.index(name)


def test_opposite_directions_cancel_out():
    assert console_action(["left", "right"]) == 0
    assert console_action(["left", "d", "up", "space"]) == CONSOLE.index("UPFIRE")


def test_an_atari_game_is_recorded_as_it_was_played(tmp_path):
    play = opened(ALE, tmp_path / "starts.jsonl", seed=4, fps=0)
    held(play, "space", 5)
    held(play, "right", 60)
    down("left")
    turns(play, 100)
    held(play, "space", 30)
    up("left")
    turns(play, 60)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    assert not play.advance()
    play.close()
    recording = read_recording(tmp_path / "starts.jsonl")
    (game,) = recording.games
    fire, right, left, both = (CONSOLE.index(name) for name in ("FIRE", "RIGHT", "LEFT", "LEFTFIRE"))
    assert game.actions == (fire,) * 5 + (right,) * 60 + (left,) * 100 + (both,) * 30 + (0,) * 60
    assert (recording.env, recording.by, game.seed) == (ALE, "a person", 4)
    assert recording.conditions == player_conditions(ALE)
    assert game.marks == played_marks(ALE, 4, game.actions)
    assert len(game.marks) == 5
    recording.require_fit(ALE)


def test_a_minatar_game_is_recorded_to_its_end_with_its_score(tmp_path):
    play = opened(MINATAR, tmp_path / "starts.jsonl", fps=0)
    held(play, "d", 3)
    down("left")
    while play.state == "playing":
        turns(play, 1)
    turns(play, 20)  # nothing is played after the end
    recording = read_recording(tmp_path / "starts.jsonl")  # before the window is closed
    play.close()
    (game,) = recording.games
    left, right = 1, 2
    assert game.actions[:3] == (right,) * 3
    assert set(game.actions[3:]) == {left}
    env = gym.make(MINATAR)
    env.reset(seed=0)
    results = [env.step(action) for action in game.actions]
    assert [result[2] for result in results] == [False] * (len(results) - 1) + [True]
    assert game.score == sum(result[1] for result in results)
    recording.require_fit(MINATAR)
    assert read_recording(tmp_path / "starts.jsonl") == recording


def test_minatar_uses_the_newest_key_that_it_knows(tmp_path):
    play = opened("MinAtar/SpaceInvaders-v1", tmp_path / "starts.jsonl", fps=0)
    down("left")
    turns(play, 1)
    down("space", "up")  # this game has no up
    turns(play, 1)
    up("space")
    turns(play, 1)
    play.close()
    left, fire = 1, 3
    assert read_recording(tmp_path / "starts.jsonl").games[0].actions == (left, fire, left)


def test_a_tap_between_two_actions_counts_once(tmp_path):
    play = opened(MINATAR, tmp_path / "starts.jsonl", fps=0)
    down("right")
    up("right")
    turns(play, 3)
    play.close()
    assert read_recording(tmp_path / "starts.jsonl").games[0].actions == (2, 0, 0)


def test_other_environments_use_arrows_or_numbers(tmp_path):
    play = opened("CartPole-v1", tmp_path / "starts.jsonl", fps=0)
    held(play, "right", 2)
    held(play, "1", 2)
    held(play, "2", 1)
    turns(play, 1)
    play.close()
    recording = read_recording(tmp_path / "starts.jsonl")
    assert recording.games[0].actions == (1, 1, 0, 0, 1, 0)
    assert recording.games[0].score == 6  # one for each step
    recording.require_fit("CartPole-v1")


def test_nothing_is_recorded_before_the_first_key_or_in_a_pause(tmp_path):
    play = opened(MINATAR, tmp_path / "starts.jsonl", fps=0)
    turns(play, 10)
    held(play, "left", 2)
    down("p")
    turns(play, 10)
    held(play, "right", 10)
    down("p")
    turns(play, 2)
    play.close()
    assert read_recording(tmp_path / "starts.jsonl").games[0].actions == (1, 1, 0, 0)


def test_a_window_that_loses_the_focus_pauses_and_releases_its_keys(tmp_path):
    play = opened(MINATAR, tmp_path / "starts.jsonl", fps=0)
    down("left")
    turns(play, 2)
    pygame.event.post(pygame.event.Event(pygame.WINDOWFOCUSLOST))
    turns(play, 5)
    down("p")
    turns(play, 2)
    play.close()
    assert read_recording(tmp_path / "starts.jsonl").games[0].actions == (1, 1, 0, 0)


def test_a_window_that_is_closed_at_once_leaves_no_file(tmp_path):
    play = opened(MINATAR, tmp_path / "starts.jsonl", fps=0)
    down("escape")
    assert not play.advance()
    play.close()
    assert not list(tmp_path.iterdir())


def test_r_saves_the_game_and_starts_the_next_with_the_next_seed(tmp_path):
    play = opened(ALE, tmp_path / "starts.jsonl", seed=7, fps=0)
    held(play, "space", 70)
    down("r")
    turns(play, 1)
    assert [game.seed for game in read_recording(tmp_path / "starts.jsonl").games] == [7]
    held(play, "left", 64)
    play.close()
    recording = read_recording(tmp_path / "starts.jsonl")
    assert [game.seed for game in recording.games] == [7, 8]
    assert [game.actions for game in recording.games] == [(1,) * 70, (0,) + (4,) * 64]
    recording.require_fit(ALE)


def test_the_command_appends_and_continues_after_the_highest_seed(tmp_path, monkeypatch, capsys):
    file = tmp_path / "starts.jsonl"
    timed(monkeypatch, "left", "r", "escape")
    assert command.run([MINATAR, "--record", str(file), "--fps", "0", "--seed", "5"]) == 0
    first = read_recording(file)
    assert (
        f"recorded 2 games, {moments(first)} moments to start from, in {file}" in capsys.readouterr().out
    )
    timed(monkeypatch, "right", "escape")
    assert command.run([MINATAR, "--record", str(file), "--fps", "0"]) == 0
    said = capsys.readouterr().out
    second = read_recording(file)
    assert second.games[:2] == first.games
    assert [game.seed for game in second.games] == [5, 6, 7]
    assert f"recorded 1 game, 3 in all, {moments(second)} moments" in said
    assert f"quantail eval RUN --protocol human-starts --starts {file}" in said
    second.require_fit(MINATAR)


def moments(recording):
    return sum(len(game.actions) - 1 for game in recording.games)


def test_ctrl_c_saves_the_game_in_progress(tmp_path, monkeypatch):
    file = tmp_path / "starts.jsonl"
    act, played = Play._act, []

    def interrupted(play, action):
        act(play, action)
        played.append(action)
        if len(played) == 30:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Play, "_act", interrupted)
    timed(monkeypatch, "space")
    with pytest.raises(KeyboardInterrupt):
        command.run([ALE, "--record", str(file), "--fps", "0"])
    (game,) = read_recording(file).games
    assert game.actions == tuple(played) == (1,) * 30


def test_a_game_is_saved_if_the_environment_fails(tmp_path):
    play = opened(ALE, tmp_path / "starts.jsonl", fps=0)
    held(play, "space", 10)
    play.player.unwrapped.ale = None
    with pytest.raises(QuantailError, match="failed in step"):
        play.run()
    assert read_recording(tmp_path / "starts.jsonl").games[0].actions == (1,) * 10


def never_open(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("the window was opened")

    monkeypatch.setattr(command, "Play", fail)


@pytest.mark.parametrize(
    ("env", "by", "conditions", "said"),
    [
        ("ALE/Pong-v5", "a person", {}, "holds games of ALE/Pong-v5, not of ALE/Breakout-v5"),
        (ALE, "a person", {"sticky": 0.25}, "under other conditions"),
        (ALE, "scripted player", {}, "holds games by 'scripted player', not by 'a person'"),
    ],
)
def test_a_recording_of_another_kind_is_refused_before_the_window_opens(
    tmp_path, monkeypatch, env, by, conditions, said
):
    never_open(monkeypatch)
    file = tmp_path / "starts.jsonl"
    Recording(env, by, player_conditions(env) | conditions, ()).write(file)
    before = file.read_bytes()
    with pytest.raises(QuantailError, match=said):
        command.run([ALE, "--record", str(file)])
    assert file.read_bytes() == before


def test_a_file_that_cannot_be_written_is_refused_before_the_window_opens(tmp_path, monkeypatch):
    never_open(monkeypatch)
    with pytest.raises(QuantailError, match="there is no folder"):
        command.run([ALE, "--record", str(tmp_path / "none" / "starts.jsonl")])
    with pytest.raises(QuantailError, match="cannot be written"):
        command.run([ALE, "--record", str(tmp_path)])
    (tmp_path / "text").write_text("hello")
    with pytest.raises(QuantailError, match="not a recording"):
        command.run([ALE, "--record", str(tmp_path / "text")])


@pytest.mark.parametrize(
    ("flag", "value"), [("scale", "0"), ("scale", "21"), ("fps", "-1"), ("seed", "x")]
)
def test_an_invalid_number_raises_a_clear_error(tmp_path, monkeypatch, flag, value):
    never_open(monkeypatch)
    with pytest.raises(QuantailError, match=f"{flag} takes a .*{value}"):
        command.run([MINATAR, "--record", str(tmp_path / "a.jsonl"), f"--{flag}={value}"])


def test_the_same_game_under_another_id_is_the_same_game(tmp_path):
    Recording("ALE/Breakout-v5", "a person", player_conditions(ALE), ()).write(tmp_path / "a.jsonl")
    assert command.recording_at(tmp_path / "a.jsonl", "BreakoutNoFrameskip-v4").env == ALE


def test_an_environment_without_a_renderer_is_refused(tmp_path):
    gym.register("Blind-v0", lambda: gym.make("CartPole-v1"))  # takes no render mode
    with pytest.raises(QuantailError, match="Blind-v0 cannot be played in a window: it renders no RGB"):
        command.run(["Blind-v0", "--record", str(tmp_path / "a.jsonl")])
    with pytest.raises(QuantailError, match="Box actions"):
        command.run(["Pendulum-v1", "--record", str(tmp_path / "a.jsonl")])


def test_a_missing_display_is_one_sentence(tmp_path):
    displays = {"SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"}
    hidden = {name: value for name, value in os.environ.items() if name not in displays}
    done = quantail("play", MINATAR, "--record", tmp_path / "a.jsonl", env=hidden)
    assert done.returncode == 2
    assert done.stderr.startswith("quantail: there is no display to open a window on: ")
    assert done.stderr.count("\n") == 1
    assert not done.stdout


def test_a_display_error_is_reported_before_the_environment_is_made(tmp_path):
    env = dict(os.environ) | {"SDL_VIDEODRIVER": "nonsense"}
    done = quantail("play", "CartPole-v1", "--record", tmp_path / "a.jsonl", env=env)
    assert done.returncode == 2
    assert done.stderr.startswith("quantail: there is no display to open a window on: nonsense")


def test_a_missing_pygame_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(QuantailError, match=r"pip install 'quantail\[play\]'"):
        command.run([MINATAR, "--record", str(tmp_path / "a.jsonl")])


def test_the_window_shows_the_picture_undistorted_above_its_text(tmp_path):
    play = opened(ALE, tmp_path / "starts.jsonl", fps=0, scale=3)
    held(play, "space", 60)
    seen = pygame.surfarray.array3d(play.window.surface).swapaxes(0, 1)
    screen = play.player.render()
    assert np.array_equal(seen[:630], screen.repeat(3, axis=0).repeat(6, axis=1))
    words = seen[630:]
    assert (words == 255).all(axis=2).sum() > 200  # white letters
    down("p")
    turns(play, 1)
    paused = pygame.surfarray.array3d(play.window.surface).swapaxes(0, 1)
    assert paused[:250].max() < seen[:250].max() / 2  # the picture is dimmed
    assert (paused[250:380] == 255).all(axis=2).sum() > 200  # and written over
    play.close()


def test_two_windows_on_one_file_lose_no_game(tmp_path):
    file = tmp_path / "starts.jsonl"
    before = command.recording_at(file, MINATAR)
    for seed in (0, 100):  # each window has seen the file as it was before
        play = Play(MINATAR, file, before, seed=seed, fps=0)
        play.state = "playing"
        turns(play, 3)
        play.close()
    assert [game.seed for game in read_recording(file).games] == [0, 100]
