"""Configurations: the settings of families, changes, names of settings, and files."""

import sys
import tomllib
from dataclasses import dataclass

import pytest

import quantail as q
from quantail import registry
from quantail.cli.main import run as command
from quantail.config import flat_settings
from quantail.errors import QuantailError
from quantail.evaluation.config import EvaluationConfig
from quantail.learning.schedules import DecayConfig
from quantail.networks import ReturnHead
from quantail.networks.config import NetworkConfig
from quantail.recipes import AGENTS, PRESETS, compose
from tests.helpers.configs import labelled
from tests.helpers.counter import Counter
from tests.helpers.runs import flags
from tests.helpers.trust import USER_MODULES


class Slow(q.EnvFamily):
    """A family from outside with a setting of its own."""

    @dataclass(frozen=True)
    class Config:
        speed: int = q.setting(1, "steps of the clock", unit="ticks", least=1)

    def recognises(self, env):
        return env.startswith("slow:")

    def make(self, env, render_mode=None):
        return Counter()


@pytest.fixture(autouse=True)
def slow(monkeypatch):
    """Register a family with a setting of its own, and forget it afterwards."""
    for name in ("_registered", "_admitted"):
        monkeypatch.setattr(registry, name, {kind: {} for kind in registry.KINDS})
    q.register_family("slow", Slow)


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a TOML file and returns its path."""

    def write(text):
        path = tmp_path / "own.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def speed(config):
    return config.environment.family.config.speed


# Settings of a family


@pytest.mark.parametrize(
    "changes",
    [{"family.speed": 2}, {"family": {"name": "slow", "speed": "2"}}, {"family": {"speed": 2}}],
    ids=str,
)
def test_the_own_settings_of_a_family_are_given_as_those_of_any_part(changes, file):
    assert speed(q.configure("slow:1", **changes)) == 2
    q.register_preset("two", q.Preset(like="small", **changes))
    assert speed(q.configure("slow:1", preset="two")) == 2
    assert speed(q.configure("slow:1", preset="two", **{"family.speed": 3})) == 3
    assert speed(q.configure("slow:1", preset=file("[family]\nspeed = 2\n"))) == 2


def test_the_command_line_takes_lists_and_saves_the_own_settings_of_a_family(tmp_path, capsys):
    assert command(["train", "slow:1", "--family.speed", "2", "--help-all"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "family slow: --family.speed N steps of the clock (ticks; you) [2]" in said
    short = {"steps": 60, "learning_starts": 30, "evaluation_episodes": 1, "threads": 1}
    words = ["--family.speed", "2", "--out", str(tmp_path / "run"), "--quiet"]
    assert command(["train", "slow:1", *flags(short), *words]) == 0
    assert speed(q.load(tmp_path / "run").config) == 2


@pytest.mark.parametrize(
    ("env", "changes", "says"),
    [
        ("slow:1", {"family.speed": 0}, "family.speed takes a whole number of at least 1, not 0"),
        ("slow:1", {"family.sped": 2}, "family slow has no setting family.sped.*Did you mean 'speed'"),
        (
            "CartPole-v1",
            {"family.speed": 2},
            "family gymnasium has no setting family.speed: it has none",
        ),
        ("slow:1", {"family": "ale"}, "family takes slow, which is the one of the environment, not ale"),
        (
            "CartPole-v1",
            {"preset": "two"},
            "preset two is for the environments of the family slow, not for those of the family gymnas",
        ),
    ],
    ids=str,
)
def test_wrong_settings_of_a_family_are_refused_in_one_sentence(env, changes, says):
    q.register_preset("two", q.Preset(like="small", family={"name": "slow", "speed": 2}))
    with pytest.raises(QuantailError, match=says):
        q.configure(env, **changes)


def test_a_configuration_with_settings_of_a_family_survives_a_file(tmp_path):
    config = q.configure("slow:1").replace(**{"family.speed": 3})
    path = tmp_path / "slow.toml"
    config.save(path)
    assert tomllib.loads(path.read_text())["family"] == {
        "name": config.environment.family.name,
        "speed": 3,
    }
    assert q.Config.load(path) == q.configure("slow:1", preset=path) == labelled(config, path)


def test_a_file_does_not_import_the_family_that_it_names(file):
    path = file('[family]\nname = "nowhere:Family"\nspeed = 3\n')
    assert compose(str(path), {}).environment.family.name == "nowhere:Family"
    with pytest.raises(
        QuantailError, match=r"own\.toml is for the environments of the family nowhere:Fam"
    ):
        q.configure("CartPole-v1", preset=path)
    with pytest.raises(
        QuantailError, match=r"own\.toml names the family 'nowhere:Family', but there is no"
    ):
        q.Config.load(path)


# Names of settings


@pytest.mark.parametrize(
    ("changes", "text", "name", "value"),
    [
        ({"head.kappa": "0.5"}, "[head]\nkappa = 0.5", "kappa", 0.5),
        (
            {"head": {"name": "quantiles", "quantiles": 50}},
            "head = { name = 'quantiles', quantiles = 50 }",
            "quantiles",
            50,
        ),
        (
            {"schedule": "linear", "schedule.final_rate": 0.5},
            "schedule.name = 'linear'\nschedule.final_rate = 0.5",
            "final_rate",
            0.5,
        ),
        (
            {"torso": {"name": "mlp", "mlp_sizes": (8, 9)}},
            "[torso]\nname = 'mlp'\nmlp_sizes = [8, 9]",
            "mlp_sizes",
            [8, 9],
        ),
    ],
    ids=["kappa", "quantiles", "final_rate", "mlp_sizes"],
)
def test_the_dotted_name_of_a_built_in_setting_means_the_same_everywhere(
    changes, text, name, value, file
):
    config = q.configure("CartPole-v1", **changes)
    assert config.to_dict()[name] == value
    assert q.configure("CartPole-v1").replace(**changes).to_dict()[name] == value
    assert q.Config.from_dict(changes).to_dict()[name] == value
    q.register_agent("mine", q.Recipe(**changes))
    assert q.configure("CartPole-v1", agent="mine").to_dict()[name] == value
    path = file(text)
    assert q.configure("CartPole-v1", preset=path) == labelled(config, path)
    assert q.Config.load(path).to_dict()[name] == value


def test_a_dotted_name_is_overridden_by_the_flat_one_of_a_later_layer(file):
    path = file('[head]\nname = "quantiles"\nquantiles = 50\n')
    assert q.configure("CartPole-v1", preset=path, quantiles=20).head.config.quantiles == 20


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"head.kappa": -2}, "kappa takes a number of at least 0, not -2"),
        ({"head.kappa": 2, "kappa": 3}, "kappa is given twice, as kappa and as head.kappa"),
        ({"kappa": 3, "head.kappa": 2}, "kappa is given twice, as kappa and as head.kappa"),
        ({"head.atoms": 2}, "atoms has no effect here: it is used only with head categorical"),
        (
            {"learner.learning_rate": 2},
            "no setting learner.learning_rate: learning_rate stands at the top level, without learner",
        ),
    ],
    ids=str,
)
def test_a_wrong_dotted_name_is_refused_in_one_sentence(changes, says, file):
    for refusing in (
        lambda: q.configure("CartPole-v1", **changes),
        lambda: q.configure("CartPole-v1").replace(**changes),
        lambda: q.Config.from_dict(changes),
        lambda: q.Config.load(file("\n".join(f"{name} = {value}" for name, value in changes.items()))),
    ):
        with pytest.raises(QuantailError, match=says):
            refusing()


# Changes


@pytest.mark.parametrize(
    "changes", [{"agent": "dqn"}, {"preset": "minatar"}, {"family": "ale"}], ids=str
)
def test_what_decides_other_settings_is_not_replaced(changes):
    config = q.configure("CartPole-v1")
    (name,) = changes
    with pytest.raises(QuantailError, match=rf"another {name}, which .*with quantail\.configure\.$"):
        config.replace(**changes)
    assert (
        config.replace(agent="iqn", preset="small", family="gymnasium") == config
    )  # the same as before


def test_a_setting_without_effect_is_refused_unless_it_is_the_default():
    for given in (
        lambda: q.Config.from_dict({"noisy_sigma": 1}),
        lambda: q.Config.from_dict({"actors": 2}),
        lambda: q.Config.from_dict({"atoms": 51}),
        lambda: q.Config(network=NetworkConfig(noisy_sigma=1)),
    ):
        with pytest.raises(QuantailError, match="has no effect here"):
            given()
    config = compose("atari-paper", {"agent": "rainbow-iqn"})
    assert config.network.noisy_sigma == 0.1
    quiet = config.replace(noisy=False)
    assert quiet.network.noisy_sigma == 0.5
    assert q.Config.from_dict(quiet.to_dict()) == quiet
    assert q.Config.from_dict({"noisy": True, "noisy_sigma": 1}).network.noisy_sigma == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"wandb": True}, "wandb takes a string, not True"),
        ({"risk": 3}, "risk takes a string, not 3"),
        ({"agent": 3}, "agent takes a string, not 3"),
    ],
    ids=str,
)
def test_a_text_takes_no_other_type(changes, says):
    with pytest.raises(QuantailError, match=says):
        q.Config.from_dict(changes)


def test_a_measure_can_be_given_where_its_text_can():
    config = q.configure("CartPole-v1", risk=q.CVaR(0.25), behaviour_risk=q.Wang(-1))
    assert config.risk.texts() == ("cvar:0.25", "wang:-1")
    assert config.replace(risk=q.CVaR(0.5)).risk.risk == "cvar:0.5"


# Names that collide


def test_two_kinds_of_settings_cannot_have_one_flat_name(monkeypatch):
    from quantail.networks import heads

    @dataclass(frozen=True)
    class Config:
        final_rate: float = 0.5  # of schedules

    Config.__module__ = "quantail.networks.heads"
    monkeypatch.setitem(heads.HEADS, "odd", type("Odd", (ReturnHead,), {"Config": Config}))
    flat_settings.cache_clear()
    try:
        with pytest.raises(QuantailError, match="final_rate is a setting of the head already"):
            flat_settings()
    finally:
        monkeypatch.undo()
        flat_settings.cache_clear()


@pytest.mark.parametrize(
    ("base", "says"),
    [
        (DecayConfig, "head odd: final_rate is a setting of the schedule already"),
        (EvaluationConfig, "head odd: .* is a setting of the group evaluation already"),
    ],
)
def test_a_part_from_outside_cannot_inherit_the_settings_of_another_kind(base, says):
    @dataclass(frozen=True)
    class Config(base):
        width: int = 3

    q.register_head("odd", type("Odd", (ReturnHead,), {"Config": Config}))
    with pytest.raises(QuantailError, match=says):
        q.configure("CartPole-v1", head="odd")


# Plain mistakes


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (
            lambda: q.train("CartPole-v1", config={"steps": 9}),
            "config takes a quantail.Config, .*'steps'",
        ),
        (
            lambda: q.train("CartPole-v1", config="own.toml"),
            "quantail.Config.load return, not 'own.toml'",
        ),
        (lambda: q.make("CartPole-v1", config={}), "config takes a quantail.Config, .*, not {}"),
        (lambda: q.Config(run=None), "run takes a RunConfig, such as config.run, not None"),
        (
            lambda: q.Config(learner={"n_step": 3}),
            "learner takes a LearnerConfig, .*, not {'n_step': 3}",
        ),
        (lambda: q.Config(head=None), "head takes a name, module:Class or a class, not None"),
        (lambda: q.read_run(None), "the folder of a run takes a path, not None"),
        (lambda: q.load(3), "the folder of a run takes a path, not 3"),
        (lambda: registry.admit("callback", "foo"), "unknown callback 'foo': it takes module:Class."),
    ],
)
def test_a_plain_mistake_gets_one_sentence(mistake, says):
    with pytest.raises(QuantailError, match=says):
        mistake()


def test_a_risk_beside_a_configuration_is_refused_unless_it_is_the_function_that_it_names(tmp_path):
    def cautious(tau):
        return tau**2

    short = {"steps": 60, "learning_starts": 30, "evaluation_episodes": 1, "threads": 1}
    config = q.configure("CartPole-v1", risk=cautious, **short)
    for other in ("cvar:0.25", q.CVaR(0.25), lambda tau: tau):
        with pytest.raises(QuantailError, match="config holds all settings, so risk cannot be given"):
            q.train("CartPole-v1", config=config, risk=other, out=tmp_path / "run")
    agent = q.train("CartPole-v1", config=config, risk=cautious, out=tmp_path / "run")
    assert agent.config.risk.risk == config.risk.risk


def test_public_names_are_listed_before_they_are_imported():
    assert set(q.__all__) <= set(dir(q))


# Files


@pytest.mark.parametrize("agent", AGENTS)
def test_a_file_means_the_same_agent_wherever_it_is_read(agent, file):
    path = file(f'agent = "{agent}"\n')
    loaded, configured = q.Config.load(path), q.configure("CartPole-v1", preset=path)
    assert loaded.run.agent == configured.run.agent == agent
    assert loaded.part_names == configured.part_names
    assert loaded.network.noisy == configured.network.noisy
    assert loaded.exploration.epsilon_start == configured.exploration.epsilon_start


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("agent", AGENTS)
def test_a_saved_configuration_is_loaded_exactly(agent, preset, tmp_path):
    config = compose(preset, {"agent": agent, "seed": 3})
    path = tmp_path / "own.toml"
    config.save(path)
    assert q.Config.load(path) == labelled(config, path)


def test_a_configuration_is_saved_only_where_it_can_be_read_again(tmp_path):
    for action in (q.configure("CartPole-v1").save, q.Config.load):
        with pytest.raises(QuantailError, match=r"takes a name that ends in \.toml, not .*small\.$"):
            action(tmp_path / "small")


UNUSED = {
    "sticky = 0.25": "sticky has no effect here: it is used only with family ale, and family is gym",
    "atoms = 21": "atoms has no effect here",
    "actors = 2": "actors has no effect here: it is used only with engine ray",
    "noisy_sigma = 0.1": "noisy_sigma has no effect here: it is used only with noisy",
    "impala_width = 2": "impala_width has no effect here",
    "[torso]\nimpala_width = 2": "impala_width has no effect here",
}


@pytest.mark.parametrize("text", UNUSED)
def test_a_setting_of_a_file_that_has_no_effect_is_refused(text, file):
    path = file(text)
    for refusing in (lambda: q.configure("CartPole-v1", preset=path), lambda: q.Config.load(path)):
        with pytest.raises(QuantailError) as caught:
            refusing()
        assert str(caught.value).startswith(f"preset {path}: {UNUSED[text]}")


def test_settings_of_a_file_for_its_own_parts_are_dropped_with_them(file):
    path = file('agent = "c51"\natoms = 21\n')
    assert q.configure("CartPole-v1", preset=path).head.config.atoms == 21
    for changes in ({"agent": "iqn"}, {"head": "implicit"}):
        assert q.configure("CartPole-v1", preset=path, **changes).head.name == "implicit"
    path = file("noisy = true\nnoisy_sigma = 0.1\n")
    assert not q.configure("CartPole-v1", preset=path, noisy=False).network.noisy


def test_a_file_without_an_environment_may_have_settings_of_any_family(file, capsys):
    assert command(["presets", str(file("sticky = 0.25\n"))]) == 0
    assert q.configure("ALE/Pong-v5", preset=file("sticky = 0.25\n")).to_dict()["sticky"] == 0.25


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("steps = 'x'", "steps takes a whole number"),
        ("stepps = 3", "unknown setting 'stepps'"),
        ("steps = 10", "steps 10 end before learning begins"),
        ("agent = 'dqnn'", "unknown agent 'dqnn'"),
        ("head = 'implict'", "names the head 'implict', which is not registered"),
        ("head = 'nowhere:Head'", "names the head 'nowhere:Head', but there is no module nowhere"),
        ("[head]\nname = 'quantiles'\nquantiles = 'x'", "quantiles takes a whole number"),
        ("[head]\nwidth = 3", "head implicit has no setting head.width"),
        ("[learner]\nlearning_rate = 1", "learning_rate stands at the top level, without learner"),
        ("[run]\nsteps = 3", r"put settings at the top level, not in a table \[run\]"),
        ("agent = 'dqn'\nkappa = 0", "kappa 0 would learn the median"),
        ("risk = 'cvr:0.1'", "unknown risk 'cvr:0.1'"),
        ("behaviour_risk = 'cvr:0.1'", "unknown risk 'cvr:0.1'"),
    ],
)
def test_an_error_about_a_file_names_the_file_once(text, says, file):
    path = file(text)
    with pytest.raises(QuantailError, match=says) as caught:
        q.configure("CartPole-v1", preset=path)
    assert str(caught.value).count(str(path)) == 1


def test_an_error_about_the_users_own_settings_does_not_blame_the_file(file):
    path = file("learning_rate = 0.5\n")
    for changes in ({"steps": 10}, {"head.width": 3}, {"kappa": -1}, {"risk": "cvr:0.1"}):
        with pytest.raises(QuantailError) as caught:
            q.configure("CartPole-v1", preset=path, **changes)
        assert str(path) not in str(caught.value)


def test_printing_a_preset_file_imports_no_module_that_it_names(file, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(USER_MODULES))
    path = str(file('head = "own_parts:Means"\n'))
    for words in (["presets", path], ["agents", "iqn", "--preset", path]):
        sys.modules.pop("own_parts", None)
        registry._admitted["head"].clear()
        assert command(words) == 2
        assert "own.toml names the module own_parts: give --trust own_parts" in capsys.readouterr().err
        assert "own_parts" not in sys.modules
        assert command([*words, "--trust", "own_parts"]) == 0
        assert "own_parts:Means" in capsys.readouterr().out
