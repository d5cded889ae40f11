from pathlib import Path

import ale_py
import pytest

import quantail
from quantail.envs.make import make_player
from quantail.evaluation.starts import draw_starts, read_recording

BANK = Path(quantail.__file__).parent / "evaluation" / "reference" / "starts"
FILES = {"ALE/Breakout-v5": "breakout-scripted.jsonl", "ALE/Pong-v5": "pong-scripted.jsonl"}


@pytest.fixture(scope="module", params=FILES)
def env(request):
    return request.param


@pytest.fixture(scope="module")
def recording(env):
    return read_recording(BANK / FILES[env])


def score_of(env, actions):
    """Return the emulator's score for these actions."""
    player = make_player(env)
    player.reset(seed=0)
    return sum(player.unwrapped.ale.act(ale_py.Action(action)) for action in actions)


def test_the_recording_states_that_a_script_played(env, recording):
    assert (recording.env, recording.by) == (env, "scripted player")


def test_the_games_replay_to_the_same_frames(env, recording):
    assert all(len(game.marks) == -(-len(game.actions) // 60) > 0 for game in recording.games)
    recording.require_fit(env)


def test_the_recording_has_many_start_states(recording):
    assert len(set(draw_starts(recording, 100, seed=0))) == 100


def test_no_two_games_are_alike(recording):
    assert len(recording.games) >= 3
    assert len({game.actions for game in recording.games}) == len(recording.games)


def test_each_game_beats_a_player_that_does_nothing(env, recording):
    first = recording.games[0]
    assert first.score == score_of(env, first.actions)
    nothing = score_of(env, [0] * min(len(game.actions) for game in recording.games))
    assert all(game.score > nothing for game in recording.games)
