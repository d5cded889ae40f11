"""Parts from outside: registered, named as module:Class, used, refused, and found again."""

import json
import sys

import numpy as np
import pytest
import torch

import quantail as q
from quantail import registry
from quantail.cli.main import run as command
from quantail.config import PARTS, flat_settings
from quantail.config.toml import to_toml
from quantail.errors import QuantailError
from quantail.networks.heads import HEADS
from quantail.recipes import compose, composition, parts_of
from quantail.risk import parse_risk
from quantail.runs.tables import read_rows
from tests.helpers.configs import config as config_of
from tests.helpers.configs import labelled
from tests.helpers.trust import USER_MODULES

TINY = {
    "steps": 120,
    "learning_starts": 40,
    "buffer_size": 100,
    "evaluation_episodes": 1,
    "evaluation_every": 120,
    "checkpoint_every": 60,
    "max_episode_steps": 40,
    "threads": 1,
}


@pytest.fixture(autouse=True)
def own_parts(monkeypatch):
    """Let tests import tests/user_modules/own_parts.py, and forget afterwards what they registered."""
    for name in ("_registered", "_admitted"):
        monkeypatch.setattr(registry, name, {kind: {} for kind in registry.KINDS})
    monkeypatch.syspath_prepend(str(USER_MODULES))
    import own_parts

    yield own_parts
    sys.modules.pop("own_parts", None)


def dotted(config):
    """Return the settings of parts from outside."""
    return {name: value for name, value in config.to_dict().items() if "." in name}


def train(tmp_path, name="run", **settings):
    return q.train("CartPole-v1", out=tmp_path / name, preset="small", **(TINY | settings))


# Names


def test_a_registered_part_is_known_by_its_name_and_remembered_as_module_class(own_parts):
    q.register_head("means", own_parts.Means)
    assert registry.find("head", "means") is own_parts.Means
    config = compose("small", {"head": "means"})
    assert config.head.name == "own_parts:Means"
    assert registry.find("head", "own_parts:Means") is own_parts.Means  # registered, so it is trusted


def test_a_class_can_be_given_as_it_is_in_python(own_parts):
    config = compose("small", {"head": own_parts.Means, "torso": own_parts.Linear})
    assert (config.head.name, config.network.torso.name) == ("own_parts:Means", "own_parts:Linear")


def test_a_local_class_is_remembered_by_the_name_under_which_it_is_registered(own_parts):
    class Local(own_parts.Means):
        pass

    q.register_head("local", Local)
    assert compose("small", {"head": "local"}).to_dict()["head"] == "local"


@pytest.mark.parametrize(
    ("kind", "name", "part", "says"),
    [
        ("head", "means", "NoHead", "head 'means' is not a subclass of ReturnHead"),
        ("head", "means", "Linear", "head 'means' is not a subclass of ReturnHead"),
        ("torso", "mine", "Means", "torso 'mine' is not a subclass of Torso"),
        ("head", "implicit", "Means", "head 'implicit' is built in"),
        ("head", "my:head", "Means", "takes letters, digits, - and _, not 'my:head'"),
        ("head", "", "Means", "takes letters"),
        ("hat", "mine", "Means", "unknown kind of part 'hat': it takes torso, head"),
        ("agent", "mine", "Means", "agent 'mine' takes a quantail.Recipe"),
        ("head", "mine", "NoDefault", "the setting outputs of its Config needs a default"),
    ],
)
def test_what_cannot_be_registered_is_refused_in_one_sentence(kind, name, part, says, own_parts):
    with pytest.raises(QuantailError, match=says):
        q.register(kind, name, getattr(own_parts, part))


def test_a_name_is_registered_once_unless_it_is_replaced(own_parts):
    q.register_head("mine", own_parts.Means)
    q.register_head("mine", own_parts.Means)  # the same again changes nothing
    with pytest.raises(QuantailError, match="head 'mine' is registered already"):
        q.register_head("mine", own_parts.WiderImplicit)
    q.register_head("mine", own_parts.WiderImplicit, replace=True)
    assert registry.find("head", "mine") is own_parts.WiderImplicit


def test_a_lookup_never_imports_a_module():
    sys.modules.pop("own_parts", None)
    with pytest.raises(QuantailError, match="head 'own_parts:Means' is not loaded: trust its module"):
        registry.find("head", "own_parts:Means")
    assert "own_parts" not in sys.modules


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"head": "implict"}, "unknown head 'implict': .*Did you mean 'implicit'"),
        (
            {"head": "nowhere:Head"},
            r"head 'nowhere:Head' cannot be imported \(No module named 'nowhere'\)",
        ),
        ({"head": "own_parts:Nothing"}, "cannot be imported .*has no attribute 'Nothing'"),
        ({"head": "own_parts:NoHead"}, "is not a subclass of ReturnHead"),
        ({"torso": "own_parts:Means"}, "is not a subclass of Torso"),
        ({"agent": "iqm"}, "unknown agent 'iqm': .*Did you mean 'iqn'"),
        ({"head.width": 8}, "head implicit has no setting head.width: it has none of its own"),
        (
            {"head": "own_parts:Means", "head.output": 8},
            "no setting head.output.*Did you mean 'outputs'",
        ),
        (
            {"head": "own_parts:Means", "head.outputs": "x"},
            "head.outputs takes a whole number from 1 to 64",
        ),
        ({"head": "own_parts:Means", "head.outputs": 65}, "head.outputs takes .* from 1 to 64, not 65"),
        ({"head": "own_parts:Means", "head.kind": "cubic"}, "head.kind takes square or absolute"),
        ({"head": "own_parts:Means", "kappa": 2}, "kappa has no effect here.*head is own_parts:Means"),
        ({"target": "own_parts:Doubled", "n_step": 3}, "target own_parts:Doubled takes n_step 1, not 3"),
        ({"hat.size": 3}, "unknown setting 'hat.size'"),
    ],
    ids=str,
)
def test_a_wrong_name_or_setting_is_refused_in_one_sentence(changes, says):
    with pytest.raises(QuantailError, match=says):
        compose("small", changes)


# Settings


def test_settings_of_a_part_are_coerced_completed_and_survive_json_and_toml(own_parts, tmp_path):
    changes = {"head": {"name": "own_parts:Means", "outputs": "7", "sizes": "5,6", "flag": "yes"}}
    config = compose("small", changes)
    own = {"outputs": 7, "scale": 1.0, "kind": "square", "sizes": (5, 6), "flag": True}
    own["sizes"] = [5, 6]
    assert dotted(config) == {f"head.{name}": value for name, value in own.items()}
    plain = json.loads(json.dumps(config.to_dict()))
    assert plain["head.outputs"] == 7
    file = tmp_path / "own.toml"
    file.write_text(to_toml(config, "mine", {}), encoding="utf-8")
    origin = registry.Origin(str(file), frozenset({"own_parts"}))
    assert compose(str(file), {}, base="small", origin=origin) == labelled(config, file)


def test_a_head_on_top_of_a_built_in_one_keeps_its_flat_settings_and_presets(own_parts):
    config = compose("small", {"head": own_parts.WiderImplicit, "kappa": 0.3, "head.bonus": 2})
    assert isinstance(config.head.config, own_parts.ImplicitConfig)
    assert dotted(config) == {"head.bonus": 2.0}
    assert config.is_active("policy_samples")
    assert not config.is_active("quantiles")


def test_another_head_drops_the_settings_of_the_agents_own(own_parts):
    head = {"name": "own_parts:Means", "outputs": 9}
    q.register_agent("mine", q.Recipe(head=head))
    assert compose("small", {"agent": "mine"}).to_dict()["head.outputs"] == 9
    assert compose("small", {"agent": "mine", "head.outputs": 3}).to_dict()["head.outputs"] == 3
    assert dotted(compose("small", {"agent": "mine", "head": "implicit"})) == {}


def test_agents_and_presets_are_recipes_of_any_settings(own_parts):
    q.register_torso("mine", own_parts.Linear)
    q.register_agent(
        "my-agent", q.Recipe(head="own_parts:Means", torso="mine", n_step=3, paper="a note")
    )
    q.register_preset("tiny", q.Preset(like="small", steps=777, learning_starts=100))
    config = compose("tiny", {"agent": "my-agent"})
    assert (config.run.steps, config.learner.n_step, config.network.torso.name) == (
        777,
        3,
        "own_parts:Linear",
    )
    assert config.learner.batch_size == compose("small", {}).to_dict()["batch_size"]
    assert composition("tiny", {"agent": "my-agent"}).sources["n_step"] == "a note"
    assert parts_of(config) == []
    assert parts_of(compose("tiny", {"agent": "my-agent", "torso": "mlp"})) == ["with mlp torso"]
    for wrong in ({"n_steps": 3}, {"hat": 1}):
        with pytest.raises(QuantailError, match="unknown setting"):
            q.Recipe(**wrong)
        with pytest.raises(QuantailError, match="unknown setting"):
            q.Preset(**wrong)


def test_every_flat_setting_of_a_part_belongs_to_a_built_in_config():
    for kind in PARTS:
        owned = {name for name, one in flat_settings().items() if one.kind == kind}
        declared = {
            field for part in registry.built_in(kind) for field in registry.flat_fields(kind, part)
        }
        assert owned == declared, kind


def test_no_setting_of_a_built_in_part_is_dotted():
    for kind in PARTS:
        for name in registry.built_in(kind):
            assert registry.own_fields(kind, name) == {}, (kind, name)


# Runs


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("torso", "Linear"),
        ("head", "Means"),
        ("head", "WiderImplicit"),
        ("target", "Doubled"),
        ("exploration", "Cautious"),
        ("sampler", "Newest"),
        ("learner", "Counting"),
    ],
)
def test_each_kind_of_part_trains_resumes_exactly_and_loads(kind, name, tmp_path):
    settings = {kind: f"own_parts:{name}", "n_step": 1}
    whole = train(tmp_path, "whole", **settings)
    train(tmp_path, "half", **(settings | {"steps": 60, "evaluation_every": 60}))
    assert whole.config.parts[kind].name == f"own_parts:{name}"
    for run in ("whole", "half"):
        registry._admitted[kind].clear()
        with pytest.raises(QuantailError, match=r"run.json names the module own_parts: give --trust"):
            q.load(tmp_path / run)
    resumed = q.resume(tmp_path / "half", steps=120, trust="own_parts")
    for key, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[key]), key


def test_torch_optimizers_can_be_named_and_their_state_is_resumed(tmp_path):
    whole = train(tmp_path, "whole", optimizer="torch.optim:AdamW")
    train(tmp_path, "half", optimizer="torch.optim:AdamW", steps=60, evaluation_every=60)
    resumed = q.resume(tmp_path / "half", steps=120, trust="torch.optim")
    for key, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[key]), key


class Stop(q.Callback):
    def on_step(self, progress):
        if progress.steps == 73:
            progress.stop("half of it is done")


def test_a_metric_of_a_head_becomes_a_column_and_is_resumed_exactly(own_parts, tmp_path):
    settings = {"head": "own_parts:Measured", "log_every": 50}
    train(tmp_path, "whole", **settings)
    train(tmp_path, "half", callbacks=[Stop()], **settings)
    q.resume(tmp_path / "half", trust="own_parts")
    whole, half = (read_rows(tmp_path / run / "metrics.csv") for run in ("whole", "half"))
    assert [row["steps"] for row in half] == ["50", "100", "120"]
    assert all(float(row["spread"]) > 0 for row in half)
    assert [row["one"] for row in half] == ["1.0"] * 3  # means, not sums, over updates and the batch
    assert whole == half
    with pytest.raises(QuantailError, match=r"metric 'loss' is a column of metrics.csv already"):
        train(tmp_path, "clash", head="own_parts:Clashing")


def test_a_learner_from_outside_makes_the_updates(own_parts, tmp_path):
    own_parts.Counting.own = 0
    train(tmp_path, learner="own_parts:Counting")
    assert own_parts.Counting.own == (120 - 40) // 2 + 1


def test_a_measure_with_two_numbers_is_registered_parsed_and_remembered(own_parts, tmp_path):
    q.register_risk("spread", own_parts.Spread)
    measure = parse_risk("spread:0.1,0.5")
    assert str(measure) == "own_parts:Spread:0.1,0.5"
    assert str(parse_risk(str(measure))) == str(measure)
    agent = train(tmp_path, risk="spread:0.1,0.5")
    assert agent.config.risk.risk == "own_parts:Spread:0.1,0.5"
    assert isinstance(agent.act(np.zeros(4, np.float32)), int)
    for text, says in (
        ("spread:0.1", "spread takes numbers, spread:fraction,weight"),
        ("spread:x", "spread takes numbers"),
        ("spreat:0.1,0.5", "Did you mean 'spread'"),
        ("own_parts:Spread", "own_parts:Spread takes numbers"),
    ):
        with pytest.raises(QuantailError, match=says):
            parse_risk(text)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"head": "own_parts:WrongShape"}, r"head own_parts:WrongShape: the atoms must have the shape"),
        (
            {"torso": "own_parts:WrongWidth"},
            r"num_features 5, so its features must have the shape \(3, 5\)",
        ),
        ({"head": "own_parts:OwnDice"}, "head own_parts:OwnDice draws random numbers of its own"),
        ({"torso": "nature"}, "torso nature takes images"),
    ],
)
def test_parts_that_do_not_fit_are_refused_before_the_run_starts(settings, says, tmp_path):
    with pytest.raises(QuantailError, match=says):
        train(tmp_path, **settings)
    assert not (tmp_path / "run").exists()


# Files


def test_a_preset_file_names_a_part_only_with_the_users_trust(tmp_path):
    sys.modules.pop("own_parts", None)
    file = tmp_path / "own.toml"
    file.write_text('[head]\nname = "own_parts:Means"\noutputs = 5\n', encoding="utf-8")
    with pytest.raises(
        QuantailError, match=r"own.toml names the module own_parts: give --trust own_parts"
    ):
        q.train("CartPole-v1", preset=str(file), out=tmp_path / "run")
    assert "own_parts" not in sys.modules
    assert not (tmp_path / "run").exists()
    agent = q.train("CartPole-v1", preset=str(file), out=tmp_path / "run", trust="own_parts", **TINY)
    assert agent.config.to_dict()["head.outputs"] == 5


def test_a_run_that_names_an_unregistered_part_says_so_and_loses_nothing(own_parts, tmp_path):
    class Local(own_parts.Means):
        pass

    q.register_head("local", Local)
    train(tmp_path, head="local")
    registry._registered["head"].clear()
    before = sorted(path.name for path in (tmp_path / "run").iterdir())
    for action in (q.load, q.resume):
        with pytest.raises(QuantailError, match="names the head 'local', which is not registered"):
            action(tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == before


def test_the_working_folder_is_searched_for_a_part_that_the_command_line_names(tmp_path, capsys):
    words = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    out = str(tmp_path / "run")
    head = ["--head", "own_parts:Means", "--head.outputs", "3", "--head.kind=absolute"]
    assert command(["train", "CartPole-v1", *head, *words, "--out", out, "--quiet"]) == 0
    assert "--trust own_parts" in capsys.readouterr().err
    assert q.load(out, trust="own_parts").config.to_dict()["head.kind"] == "absolute"
    assert command(["eval", out, "--episodes", "2", "--trust", "own_parts"]) == 0


def test_help_and_listings_know_parts_from_outside(own_parts, capsys):
    q.register_head("means", own_parts.Means)
    q.register_agent("my-agent", q.Recipe(summary="of my own", head="means"))
    q.register_preset("tiny", q.Preset(summary="for tests", like="small"))
    q.register_risk("spread", own_parts.Spread)
    said = {}
    for words in (["agents"], ["agents", "my-agent"], ["presets"], ["risks"]):
        assert command(words) == 0
        said[" ".join(words)] = capsys.readouterr().out
    assert "my-agent" in said["agents"]
    assert "of my own" in said["agents"]
    assert "head.outputs" in said["agents my-agent"]
    assert "for tests" in said["presets"]
    assert "spread" in said["risks"]
    assert command(["train", "CartPole-v1", "--agent", "my-agent", "--help-all"]) == 0
    text = capsys.readouterr().out
    assert "|means|module:Class" in text
    assert "--head.outputs" in text
    assert "equally likely returns" in text


def test_settings_of_every_built_in_part_say_with_which_parts_they_are_used():
    for head, cls in HEADS.items():
        config = config_of(head=head)
        for name, one in flat_settings().items():
            if one.kind == "head":
                assert config.is_active(name) == (name in cls.Config.__dataclass_fields__), name


@pytest.mark.parametrize("name", ["Nan", "inf"])
def test_a_part_may_have_a_name_that_python_reads_as_a_number(name, own_parts, monkeypatch):
    monkeypatch.setattr(own_parts, name, own_parts.Means, raising=False)
    assert registry.admit("head", f"own_parts:{name}") is own_parts.Means
    monkeypatch.setattr(own_parts, name, lambda tau: tau**2)
    assert str(parse_risk(f"own_parts:{name}")) == f"own_parts:{name}"
