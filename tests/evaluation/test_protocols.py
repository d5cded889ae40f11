from dataclasses import replace

import numpy as np
import pytest

from quantail.envs import find_family, make
from quantail.errors import QuantailError
from quantail.evaluation.protocols import (
    ABOUT,
    PROTOCOLS,
    Protocol,
    find_protocol,
    own_protocol,
)
from quantail.recipes import compose

PAPER = compose("atari-paper", {})
ALE = find_family("ALE/Pong-v5", PAPER.environment)
HASHES = {"no-op": "b5c6fe5cd5", "sticky": "246bf21080", "human-starts": "346f8715e7"}


def test_the_standard_protocols_match_their_papers():
    no_op, sticky, human = (PROTOCOLS[name] for name in ("no-op", "sticky", "human-starts"))
    assert (no_op.no_ops, no_op.sticky, no_op.epsilon, no_op.frames) == (30, 0.0, 0.001, 500_000)
    assert (sticky.no_ops, sticky.sticky) == (0, 0.25)
    assert (human.no_ops, human.sticky, human.episodes) == (0, 0.0, 100)
    assert {one.max_frames for one in PROTOCOLS.values()} == {108_000}
    assert {one.action_repeat for one in PROTOCOLS.values()} == {4}


def test_the_hashes_are_frozen():
    # A change here makes every saved result incomparable: raise the version instead.
    assert {name: one.hash for name, one in PROTOCOLS.items()} == HASHES


def test_the_papers_preset_evaluates_500k_frames_under_no_op_every_million_frames():
    own = own_protocol(ALE, PAPER)
    assert own.name == "no-op"
    assert own.hash == PROTOCOLS["no-op"].hash
    assert own.frames == 500_000
    assert PAPER.evaluation.evaluation_every * ALE.frames_per_step == 1_000_000


@pytest.mark.parametrize(
    "change",
    [{"no_ops": 1}, {"sticky": 0.1}, {"action_repeat": 2}, {"epsilon": 0.05}, {"max_frames": 18_000},
     {"starts": "a recording"}, {"version": 2}],
)  # fmt: skip
def test_another_condition_changes_the_hash(change):
    assert replace(PROTOCOLS["no-op"], **change).hash != PROTOCOLS["no-op"].hash


@pytest.mark.parametrize(
    "change",
    [{"name": "mine"}, {"frames": 0}, {"episodes": 7}, {"sticky": 0}, {"epsilon": np.float64(0.001)}],
)
def test_another_name_or_budget_or_number_type_keeps_the_hash(change):
    assert replace(PROTOCOLS["no-op"], **change).hash == PROTOCOLS["no-op"].hash


def test_recordings_of_different_games_have_the_same_hash():
    human = PROTOCOLS["human-starts"]
    one, other = (replace(human, starts=f"recording {name} by a person") for name in "ab")
    assert one.hash == other.hash == human.hash
    assert "recording a by a person" in one.describe()


@pytest.mark.parametrize(
    ("field", "value"),
    [("epsilon", 7), ("epsilon", "much"), ("sticky", float("nan")), ("episodes", 0), ("episodes", 2.5),
     ("no_ops", -1), ("action_repeat", 0), ("frames", "many"), ("max_frames", True)],
)  # fmt: skip
def test_an_invalid_protocol_is_refused_with_the_name_of_the_field(field, value):
    with pytest.raises(QuantailError, match=f"^{field} takes a"):
        Protocol("mine", **{field: value})


def test_a_budget_of_frames_is_counted_in_steps():
    assert PROTOCOLS["no-op"].budget_steps == 125_000
    assert PROTOCOLS["human-starts"].budget_steps == 0


def test_human_starts_outside_ale_are_counted_in_episodes_under_the_run_s_own_conditions():
    small = compose("small", {"evaluation_steps": 1000, "evaluation_epsilon": 0.3})
    found = find_protocol("human-starts", find_family("CartPole-v1"), small)
    assert (found.frames, found.episodes, found.epsilon) == (0, 100, 0.3)
    assert found.starts


def test_a_changed_condition_is_in_the_name_and_an_unchanged_one_is_not():
    changed = PROTOCOLS["no-op"].changed(epsilon=0.05)
    assert changed.name == "no-op with epsilon 0.05"
    assert PROTOCOLS["no-op"].changed(epsilon=0.001) == PROTOCOLS["no-op"]


def test_a_protocol_survives_a_round_trip_through_json():
    one = PROTOCOLS["sticky"]
    assert Protocol.from_dict(one.to_dict()) == one


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda content: content | {"epsilon": 0.05},
            "does not match its stored hash 246bf21080",
        ),
        (lambda content: content | {"gravity": 1}, "a protocol has no field gravity"),
        (lambda content: [1], "needs a name and conditions"),
        (lambda content: content | {"starts": 3}, "starts takes a string"),
        (lambda content: content | {"version": "one"}, "version takes a whole number"),
    ],
)
def test_a_protocol_that_was_changed_after_it_was_saved_is_refused(change, said):
    with pytest.raises(QuantailError, match=said):
        Protocol.from_dict(change(PROTOCOLS["sticky"].to_dict()))


def test_a_description_states_every_condition():
    text = PROTOCOLS["no-op"].describe()
    for word in ("no-op: ", "30 no-op", "0.001", "108,000", "500,000"):
        assert word in text
    assert PROTOCOLS["no-op"].hash in PROTOCOLS["no-op"].label
    assert "sticky actions with probability 0.25" in PROTOCOLS["sticky"].describe()


def test_a_description_without_exploration_or_a_name_needs_no_glossary():
    own = Protocol("own", epsilon=0)
    assert own.describe() == (
        "no exploration; 30 episodes, which end as the environment ends them, "
        "after 27,000 steps at the latest"
    )
    assert Protocol("own", epsilon=0, episodes=1).describe() == (
        "no exploration; 1 episode, which ends as the environment ends it, "
        "after 27,000 steps at the latest"
    )


def test_the_environment_follows_the_protocol():
    sticky = PROTOCOLS["sticky"]
    env = make("ALE/Breakout-v5", sticky.limit(PAPER.environment), conditions=sticky.conditions)
    assert (env.unwrapped.sticky, env.unwrapped.no_ops, env.unwrapped.action_repeat) == (0.25, 0, 4)
    env.close()
    other = PAPER.replace(max_episode_steps=5, no_ops=0, action_repeat=2)
    no_op = PROTOCOLS["no-op"]
    assert no_op.limit(other.environment).max_episode_steps == 27_000
    config = find_family("ALE/Breakout-v5", other.environment).under(no_op.conditions).config
    assert (config.no_ops, config.action_repeat, config.life_loss_ends) == (30, 4, True)


def test_protocols_for_ale_games_are_refused_elsewhere():
    small = compose("small", {})
    for name in ("no-op", "sticky"):
        with pytest.raises(QuantailError, match="ALE games"):
            find_protocol(name, find_family("CartPole-v1"), small)
    assert find_protocol("human-starts", find_family("MinAtar/Asterix-v0"), small).episodes == 100
    with pytest.raises(QuantailError, match="Did you mean 'no-op'"):
        find_protocol("noop", ALE, PAPER)
    assert set(ABOUT) == {"own", *PROTOCOLS}
