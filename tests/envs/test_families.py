"""Families of environments: which one is found, what a short one needs, how wrong ones are refused."""

import json
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest

import quantail
from quantail import registry
from quantail.envs import find_family, make
from quantail.envs.families import locate, modules_of_env
from quantail.envs.source import env_from_file
from quantail.errors import QuantailError
from quantail.evaluation.protocols import find_protocol, own_protocol
from quantail.recipes import compose
from quantail.replay.store import TERMINAL
from quantail.runs.tables import read_rows
from quantail.trust import Origin
from tests.helpers.counter import Counter
from tests.helpers.runs import prepare

SMALL = compose("small", {})
TINY = {
    "steps": 60,
    "learning_starts": 30,
    "evaluation_episodes": 1,
    "evaluation_every": 60,
    "log_every": 20,
    "threads": 1,
}


class Counters(quantail.EnvFamily):
    """As short as a family can be."""

    preset = "small"

    def recognises(self, env):
        return env.startswith("counter:")

    def make(self, env, render_mode=None):
        return Counter()


class Laps(Counters):
    """Every step takes three frames, and in learning a return ends with each lap."""

    frames_per_step = 3

    def ends_return(self, terminated, info):
        return terminated or info["lap"]


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    """Forget afterwards what a test registers."""
    monkeypatch.setattr(registry, "_registered", {kind: {} for kind in registry.KINDS})


def test_a_family_that_recognises_and_makes_is_enough_to_train_load_and_evaluate(tmp_path):
    quantail.register_family("counters", Counters)
    quantail.train("counter:1", out=tmp_path / "run", **TINY)
    loaded = quantail.load(tmp_path / "run")
    result = quantail.evaluate(loaded, episodes=2)
    assert result.returns.tolist() == [10, 10]
    assert quantail.make("counter:1").action_names() == ["action 0", "action 1"]
    quantail.resume(tmp_path / "run", steps=80)


def test_a_family_decides_frames_per_step_and_where_a_return_ends(tmp_path):
    quantail.register_family("laps", Laps)
    quantail.train("counter:1", out=tmp_path / "run", **TINY)
    rows = read_rows(tmp_path / "run" / "metrics.csv")
    assert [(row["steps"], row["frames"]) for row in rows] == [
        ("20", "60"),
        ("40", "120"),
        ("60", "180"),
    ]
    env = make("counter:1", SMALL.environment)
    env.reset(seed=0)
    ends = []
    for _ in range(10):
        *_, terminated, _, info = env.step(0)
        ends.append(env.ends_return(terminated, info))
    assert ends == [False, False, True] * 3 + [True]
    assert own_protocol(find_family("counter:1", SMALL.environment), SMALL).action_repeat == 3


@pytest.mark.parametrize(("family", "terminal"), [(Counters, [10]), (Laps, [3, 6, 9, 10])])
def test_a_return_that_ends_early_is_terminal_in_the_replay_buffer(family, terminal, tmp_path):
    quantail.register_family("counters", family)
    with closing(prepare("counter:1", out=tmp_path / "run", **TINY)) as trainer:
        trainer.parts.collector.start()
        for _ in range(10):
            trainer.step()
        flags = trainer.parts.replay.store.flags[0, :10]
    assert (np.flatnonzero(flags & TERMINAL) + 1).tolist() == terminal


def test_families_from_outside_are_asked_before_the_fallback():
    class Poles(quantail.EnvFamily):
        preset = "worlds"

        def recognises(self, env):
            return env == "CartPole-v1"

    assert find_family("CartPole-v1").name == "gymnasium"
    quantail.register_family("poles", Poles)
    assert (find_family("CartPole-v1").name, find_family("Acrobot-v1").name) == ("poles", "gymnasium")
    assert (
        make("CartPole-v1", SMALL.environment).family.name == "poles"
    )  # made by Gymnasium, as it is registered


@pytest.mark.parametrize("taken", ["counter:1", "ALE/Pong-v5"])
def test_an_id_that_two_families_recognise_is_refused(taken):
    class Greedy(Counters):
        def recognises(self, env):
            return env == taken

    quantail.register_family("counters", Counters)
    quantail.register_family("greedy", Greedy)
    with pytest.raises(
        QuantailError, match=r"recognised by the environment families \w+ and greedy: use only one\.$"
    ):
        find_family(taken)


class Asked(Counters):
    def recognises(self, env):
        raise KeyError("colour")


class Unmade(Counters):
    def make(self, env, render_mode=None):
        raise OSError("no\nrope")


class NoEnvironment(Counters):
    def make(self, env, render_mode=None):
        return 3


class Uncreated(Counters):
    def __init__(self):
        raise RuntimeError("not today")


@pytest.mark.parametrize(
    ("family", "says"),
    [
        (Asked, "the environment family odd failed in recognises for 'counter:1': KeyError: 'colour'."),
        (Unmade, "counter:1 cannot be made by the environment family odd: OSError: no rope."),
        (NoEnvironment, "the environment family odd made int for counter:1, not a Gymnasium environ"),
        (Uncreated, "the environment family odd cannot be created: RuntimeError: not today."),
    ],
)
def test_a_family_that_fails_is_named_in_one_sentence(family, says):
    quantail.register_family("odd", family)
    with pytest.raises(QuantailError) as caught:
        make("counter:1", SMALL.environment)
    assert str(caught.value).startswith(says)


def test_names_of_the_wrong_number_of_actions_are_refused():
    class Wordy(Counters):
        def action_names(self, env):
            return ["one", "two", "three"]

    quantail.register_family("wordy", Wordy)
    with pytest.raises(
        QuantailError, match=r"counter:1 has 3 names for 2 actions .* its family wordy\)"
    ):
        make("counter:1", SMALL.environment).action_names()


def test_settings_of_another_family_are_refused_and_own_ones_are_used():
    @dataclass(frozen=True)
    class Config:
        laps: int = 3

    class Configured(Counters):
        pass

    Configured.Config = Config
    quantail.register_family("configured", Configured)
    assert find_family("counter:1", SMALL.environment).config == Config()
    with pytest.raises(QuantailError, match=r"sticky has no effect here: .*family is configured"):
        quantail.configure("counter:1", sticky=0.25)
    paper = compose("atari-paper", {"resize": "area"})
    config = find_family("ALE/Pong-v5", paper.environment).config
    assert (config.action_repeat, config.no_ops, config.resize) == (4, 30, "area")


def test_a_name_that_a_family_recognises_names_no_module():
    quantail.register_family("counters", Counters)
    assert modules_of_env("counter:small") == frozenset()
    assert modules_of_env("counting:small") == {"counting"}
    origin = Origin("run.json", frozenset())
    assert locate(env_from_file("counter:small", origin))[1] == "counter:small"
    with pytest.raises(QuantailError, match="names the module counting: give --trust counting"):
        locate(env_from_file("counting:small", origin))


@pytest.mark.parametrize(
    ("env", "names"),
    [("MinAtar/Breakout-v1", "nothing left right"), ("Quantail/WindyCliff-v0", "on up down")],
)
def test_an_environment_that_a_function_makes_is_known_by_its_family(env, names):
    quantail.make(env)  # registers the id
    made = quantail.make(lambda: gym.make(env))
    assert made.action_names() == names.split()
    assert find_family(lambda: gym.make(env)).preset == "small"  # it is not an id


def test_importing_minatar_waits_until_an_environment_is_made():
    code = "import sys; from quantail.envs import find_family as f; f('MinAtar/Breakout-v1'); "
    code += "f('CartPole-v1'); assert 'minatar' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_packages_of_games_are_not_imported_for_an_id_that_gymnasium_knows():
    code = "import sys; import quantail; quantail.configure('CartPole-v1'); "
    code += "quantail.configure('Quantail/Chain-v0'); "
    code += "assert not {'ale_py', 'minatar'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Protocols


def test_a_registered_protocol_is_played_under_its_registered_name():
    quantail.register_protocol(
        "brief", quantail.Protocol("other", epsilon=1.0, max_frames=4, episodes=3)
    )
    family = find_family("CartPole-v1", SMALL.environment)
    found = find_protocol("brief", family, SMALL)
    assert (found.name, found.episodes) == ("brief", 3)
    paper = compose("atari-paper", {})
    ale = find_family("ALE/Pong-v5", paper.environment)
    assert ale.under(find_protocol("brief", ale, paper).conditions).frames_per_step == 1


def test_a_protocol_is_refused_where_the_family_cannot_meet_its_conditions():
    quantail.register_protocol("windy", quantail.Protocol("windy", sticky=0.1, episodes=3))
    quantail.register_family("laps", Laps)
    with pytest.raises(
        QuantailError,
        match=r"windy is for ALE games, because it has sticky 0.1: use own or human-starts here\.$",
    ):
        find_protocol("windy", find_family("CartPole-v1", SMALL.environment), SMALL)
    with pytest.raises(QuantailError, match=r"because it has sticky 0.1 and action_repeat 1: use own"):
        find_protocol("windy", find_family("counter:1", SMALL.environment), SMALL)


class Paced(Counters):
    """Has settings of its own; `laps` is about learning alone."""

    @dataclass(frozen=True)
    class Config:
        speed: int = 1
        rope: str = "hemp"
        sizes: tuple = (3, 4)
        laps: bool = False

    def make(self, env, render_mode=None):
        made.append(self.config)
        return Counter()

    def conditions(self):
        return {name: one for name, one in super().conditions().items() if name != "laps"}


made = []


def test_the_own_settings_of_a_family_are_conditions_of_its_protocols():
    quantail.register_family("paced", Paced)
    quantail.register_protocol("calm", quantail.Protocol("calm", epsilon=0.5))

    def protocols(**changes):
        config = quantail.configure("counter:1", **{f"family.{k}": v for k, v in changes.items()})
        family = find_family("counter:1", config.environment)
        return [find_protocol(name, family, config) for name in ("own", "calm")]

    usual, faster, laps = protocols(), protocols(speed=3), protocols(laps=True)
    for one, other, same in zip(usual, faster, laps, strict=True):
        assert one.hash != other.hash
        assert one == same
        assert "rope hemp, sizes 3,4, speed 3;" in other.summary
        restored = quantail.Protocol.from_dict(json.loads(json.dumps(other.to_dict())))
        assert restored == other
    gymnasium = find_protocol("calm", find_family("CartPole-v1"), SMALL)
    assert gymnasium.hash == quantail.Protocol("calm", epsilon=0.5).hash


def test_a_protocol_sets_the_own_settings_of_a_family_or_is_refused(tmp_path):
    quantail.register_family("paced", Paced)
    agent = quantail.train("counter:1", out=tmp_path / "run", **TINY)
    made.clear()
    result = quantail.evaluate(agent, protocol=quantail.Protocol("fast", settings={"speed": 5}))
    assert {(one.speed, one.rope, one.sizes) for one in made} == {(5, "hemp", (3, 4))}
    assert result.protocol.settings == {"rope": "hemp", "sizes": (3, 4), "speed": 5}
    quantail.register_protocol("fast", quantail.Protocol("fast", settings={"speed": 5}))
    with pytest.raises(
        QuantailError, match=r"fast is for environments of its own, because it has speed 5"
    ):
        find_protocol("fast", find_family("CartPole-v1"), SMALL)
    for wrong, says in ((3, "settings takes a mapping"), ({"a": None}, "settings: a takes a number")):
        with pytest.raises(QuantailError, match=says):
            quantail.Protocol("odd", settings=wrong)


def test_how_an_agent_sees_a_game_of_the_ale_is_no_condition_of_its_protocols():
    names = set()
    for changes in ({}, {"resize": "area"}, {"frame_size": 64}, {"life_loss_ends": False}):
        config = compose("atari-paper", changes)
        names.add(own_protocol(find_family("ALE/Pong-v5", config.environment), config).label)
    assert names == {"no-op v1 (b5c6fe5cd5)"}


@pytest.mark.parametrize("name", ["own", "no-op"])
def test_the_name_of_a_built_in_protocol_cannot_be_registered(name):
    with pytest.raises(QuantailError, match=f"protocol '{name}' is built in"):
        quantail.register_protocol(name, quantail.Protocol(name))


@pytest.mark.parametrize(
    ("kind", "part", "says"),
    [
        ("family", Counter, "is not a subclass of EnvFamily"),
        ("protocol", 3, "takes a quantail.Protocol, not 3"),
        ("callback", Counter, "is not a subclass of Callback"),
    ],
)
def test_a_part_of_the_wrong_kind_cannot_be_registered(kind, part, says):
    with pytest.raises(QuantailError, match=says):
        quantail.register(kind, "mine", part)
