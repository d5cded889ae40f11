import json
from dataclasses import replace

import numpy as np
import pytest

from quantail.envs import make
from quantail.envs.make import make_player, player_conditions
from quantail.errors import QuantailError
from quantail.evaluation.evaluate import evaluate
from quantail.evaluation.protocols import PROTOCOLS
from quantail.evaluation.starts import Game, Recording, draw_starts, played_marks, read_recording
from quantail.recipes import compose
from tests.helpers.agents import agent

BREAKOUT = "ALE/Breakout-v5"


def record(env, games=2, length=200, by="a test"):
    """Record games of random actions that last a few frames each."""
    player = make_player(env)
    made = []
    for seed in range(games):
        rng = np.random.default_rng(seed)
        player.reset(seed=seed)
        actions, score = [], 0.0
        while len(actions) < length:
            button = int(rng.integers(player.actions.count))
            for _ in range(5):
                _, reward, over, _, _ = player.step(button)
                actions.append(button)
                score += reward
                if over:
                    break
            if over:
                break
        marks = played_marks(env, seed, tuple(actions))
        made.append(Game(seed, tuple(actions), score, marks))
    return Recording(env, by, player_conditions(env), tuple(made))


@pytest.fixture(scope="module")
def breakout():
    return record(BREAKOUT)


def test_a_recording_survives_a_round_trip_through_its_file(tmp_path, breakout):
    breakout.write(tmp_path / "games.jsonl")
    again = read_recording(tmp_path / "games.jsonl")
    assert again == breakout
    again.require_fit(BREAKOUT)
    header = json.loads((tmp_path / "games.jsonl").read_text().splitlines()[0])
    assert header["env"] == BREAKOUT
    assert header["by"] == "a test"
    assert header["hash"] == breakout.hash


def test_starts_are_states_of_the_games_sampled_without_replacement_by_seed(breakout):
    starts = draw_starts(breakout, 100, seed=4)
    assert starts == draw_starts(breakout, 100, seed=4)
    assert starts != draw_starts(breakout, 100, seed=5)
    assert len(set(starts)) == 100
    games = {game.seed: game.actions for game in breakout.games}
    for start in starts:
        assert start.actions == games[start.seed][: len(start.actions)]
        assert 0 < len(start.actions) < len(games[start.seed])


def test_no_start_is_at_the_end_of_a_game_or_at_its_limit():
    game = Game(0, tuple(range(20)), 0.0, ())
    recording = Recording("X", "a test", {}, (game,))
    assert {len(start.actions) for start in draw_starts(recording, 19, seed=0)} == set(range(1, 20))
    assert {len(start.actions) for start in draw_starts(recording, 7, seed=0, limit=8)} == set(
        range(1, 8)
    )
    with pytest.raises(QuantailError, match="19 start states"):
        draw_starts(recording, 20, seed=0)
    with pytest.raises(QuantailError, match="7 start states"):
        draw_starts(recording, 8, seed=0, limit=8)


def test_an_unknown_action_is_refused(breakout):
    game = breakout.games[0]
    other = Game(game.seed, (99, *game.actions[1:]), game.score, game.marks)
    changed = Recording(breakout.env, breakout.by, breakout.conditions, (other,))
    with pytest.raises(
        QuantailError, match="game 1 of the recording does not replay to the same frames"
    ):
        changed.require_fit(BREAKOUT)


def test_a_start_uses_the_seed_of_its_recorded_game():
    adapters = [make("CartPole-v1", compose("small", {}).environment) for _ in range(2)]
    seen = [adapter.reset_to(seed, (0, 1)) for adapter, seed in zip(adapters, (1, 2), strict=True)]
    assert not np.array_equal(*seen)


def test_the_frame_stack_is_empty_at_a_start_outside_ale_too():
    adapter = make("CartPole-v1", compose("small", {"stack": 3}).environment)
    seen = adapter.reset_to(1, (0, 1, 0, 1))
    assert not seen[:2].any()
    assert seen[2].any()


def test_every_start_state_is_equally_likely():
    short = Game(0, tuple(range(5)), 0.0, ())
    long = Game(1, tuple(range(17)), 0.0, ())
    recording = Recording("X", "a test", {}, (short, long))
    drawn = [start for seed in range(2000) for start in draw_starts(recording, 1, seed)]
    share = np.mean([start.seed == 0 for start in drawn])
    assert share == pytest.approx(4 / 20, abs=0.03)
    lengths = np.bincount([len(start.actions) for start in drawn if start.seed == 1], minlength=17)
    assert lengths[0] == 0
    assert lengths[1:].min() > 60


def test_more_starts_than_states_are_refused(breakout):
    with pytest.raises(QuantailError, match="start states, but 1,000 are requested"):
        draw_starts(breakout, 1000, seed=0)


def test_an_agent_continues_from_the_recorded_state_whatever_its_action_repeat(breakout):
    start = draw_starts(breakout, 1, seed=3)[0]
    player = make_player(BREAKOUT)
    player.reset(seed=start.seed)
    for action in start.actions:
        expected, *_ = player.step(action)
    for repeat in (1, 4):
        adapter = make(
            BREAKOUT, compose("atari-paper", {"action_repeat": repeat, "no_ops": 30}).environment
        )
        seen = adapter.reset_to(start.seed, start.actions)
        assert np.array_equal(seen[-1], expected)
        assert not seen[:-1].any()  # earlier frames belong to the human and not to the agent


def test_the_score_counts_only_from_the_start_state():
    actions = tuple([0, 1] * 10)
    marks = played_marks("CartPole-v1", 7, actions)
    recording = Recording(
        "CartPole-v1", "a test", player_conditions("CartPole-v1"), (Game(7, actions, 20.0, marks),)
    )
    result = evaluate(agent(), protocol="human-starts", starts=recording, episodes=8)
    assert (
        result.returns.tolist() == result.lengths.tolist()
    )  # one point per step, none for the recorded steps
    for index, start in enumerate(draw_starts(recording, 8, seed=1)):
        adapter = make("CartPole-v1", agent().config.environment)
        observation, score, over = adapter.reset_to(start.seed, start.actions), 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = adapter.step(agent().act(observation))
            score, over = score + reward, terminated or truncated
        assert result.returns[index] == score


def test_frames_of_the_last_episode_are_not_in_the_first_stack_of_the_next():
    for env, preset in (("CartPole-v1", "small"), (BREAKOUT, "atari-paper")):
        adapter = make(env, compose(preset, {"stack": 3}).environment)
        adapter.reset(seed=0)
        for _ in range(4):
            adapter.step(1)
        seen = adapter.reset_to(5, (0, 1))
        assert not seen[:-1].any()
        assert seen[-1].any()


def test_the_frame_limit_includes_the_recorded_part(breakout):
    mine = agent(BREAKOUT, "atari-paper", max_episode_steps=60, policy_samples=2, head_size=16)
    short = replace(PROTOCOLS["human-starts"], max_frames=240)
    result = evaluate(mine, protocol=short, starts=breakout, episodes=6, seed=2, epsilon=0.0)
    before = np.array([len(start.actions) for start in draw_starts(breakout, 6, seed=2)])
    assert (result.lengths <= (240 - before) // 4).all()
    assert (result.lengths == (240 - before) // 4).any()


def test_evaluation_checks_that_the_recording_fits(breakout):
    strange = Recording(breakout.env, breakout.by, breakout.conditions | {"rom": "x"}, breakout.games)
    mine = agent(BREAKOUT, "atari-paper", policy_samples=2, head_size=16)
    with pytest.raises(QuantailError, match="another protocol: rom x"):
        evaluate(mine, protocol="human-starts", starts=strange, episodes=2)


def test_the_protocol_of_a_result_accepts_its_own_recording_and_no_other(breakout):
    mine = agent(BREAKOUT, "atari-paper", policy_samples=2, head_size=16)
    other = replace(PROTOCOLS["human-starts"], max_frames=210, starts="recording x by a person")
    with pytest.raises(QuantailError, match="starts from recording x by a person, not from recording"):
        evaluate(mine, protocol=other, starts=breakout, episodes=2)
    own = replace(other, starts=breakout.label)
    assert evaluate(mine, protocol=own, starts=breakout, episodes=2).protocol.starts == breakout.label


def test_the_result_names_the_recording_it_started_from(breakout):
    mine = agent(BREAKOUT, "atari-paper", policy_samples=2, head_size=16)
    short = replace(PROTOCOLS["human-starts"], max_frames=210)
    result = evaluate(mine, protocol=short, starts=breakout, episodes=2, seed=0)
    assert result.protocol.starts == f"recording {breakout.checksum} by a test"
    assert result.protocol.no_ops == 0


def test_no_op_frames_are_dropped_from_the_conditions_of_recorded_starts(breakout):
    mine = agent(BREAKOUT, "atari-paper", policy_samples=2, head_size=16)
    short = replace(PROTOCOLS["human-starts"], max_frames=210)
    result = evaluate(mine, protocol=replace(short, no_ops=30), starts=breakout, episodes=2)
    assert result.protocol.hash == short.hash


def test_starts_of_another_game_are_refused_by_name(breakout):
    with pytest.raises(QuantailError, match="are from ALE/Breakout-v5, but the agent plays ALE/Pong-v5"):
        breakout.require_fit("ALE/Pong-v5")


def test_a_changed_protocol_is_refused_with_the_change_named(breakout):
    sticky = Recording(breakout.env, breakout.by, breakout.conditions | {"sticky": 0.25}, breakout.games)
    with pytest.raises(QuantailError, match=r"another protocol: sticky 0.25 \(now 0.0\)"):
        sticky.require_fit(BREAKOUT)


def test_a_game_that_plays_differently_here_is_refused(breakout):
    game = breakout.games[1]
    other = Game(game.seed, game.actions, game.score, (game.marks[0] ^ 1, *game.marks[1:]))
    changed = Recording(breakout.env, breakout.by, breakout.conditions, (breakout.games[0], other))
    with pytest.raises(
        QuantailError, match="game 2 of the recording does not replay to the same frames"
    ):
        changed.require_fit(BREAKOUT)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace('"seed":1', '"seed":9'), "checksum differs"),
        (lambda text: "\n".join(text.splitlines()[:-1]) + "\n", "checksum differs"),
        (lambda text: text.replace('"sticky": 0.0', '"sticky": 0.5'), "does not match its stored hash"),
        (lambda text: text.replace('"by": "a test"', '"by": "a person"'), "checksum differs"),
        (lambda text: text.replace('"checksum"', '"sum"'), "is not a recording"),
        (lambda text: text.replace('"protocol": {', '"protocol": "x", "y": {'), "is not a recording"),
        (lambda text: "", "is not a recording"),
        (lambda text: text.replace('"env": "ALE/Breakout-v5"', '"env": 5', 1), "its env is 5"),
        (lambda text: text.replace('"by": "a test"', '"by": null'), "its by is None"),
        (lambda text: text.replace('"by"', '"who"'), "it lacks by"),
        (lambda text: "[]", "of the wrong kind"),
        (lambda text: '{"kind": "a song"}\n', "it holds a song"),
        (lambda text: text.replace('"schema": 1', '"schema": 99'), "made by a newer Quantail"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused(tmp_path, breakout, change, said):
    path = tmp_path / "games.jsonl"
    breakout.write(path)
    path.write_text(change(path.read_text()))
    with pytest.raises(QuantailError, match=said):
        read_recording(path)


def test_human_starts_without_a_recording_and_a_recording_without_human_starts_are_refused(breakout):
    with pytest.raises(QuantailError, match="--starts FILE"):
        evaluate(agent(), protocol="human-starts")
    with pytest.raises(QuantailError, match="there is no recording at"):
        evaluate(agent(), protocol="human-starts", starts="nowhere.jsonl")
    with pytest.raises(QuantailError, match="starts is for protocol human-starts, not own"):
        evaluate(agent(), starts=breakout)
    with pytest.raises(QuantailError, match="episodes, one from each start"):
        evaluate(agent(), protocol="human-starts", frames=100)
