"""Settings of a plug-in's parts, and plug-ins that cannot be loaded."""

import json
import tomllib
from dataclasses import dataclass

import pytest

import quantail as q
from quantail.errors import QuantailError
from quantail.networks import ReturnHead
from tests.helpers.plugins import PACKAGE, broken, commands, python, refused, searching
from tests.helpers.runs import flags

TINY = {
    "steps": 80,
    "learning_starts": 60,
    "evaluation_every": 80,
    "evaluation_episodes": 1,
    "buffer_size": 100,
    "threads": 1,
}


# Settings


def test_settings_of_a_part_are_given_in_three_ways_and_are_the_same(plugin, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('[head]\nname = "gaussian-mixture"\ncomponents = 4\nmin_sigma = 1\n')
    words = ["--head", "gaussian-mixture", "--head.components", "4", "--head.min-sigma=1"]
    out, short = tmp_path / "run", flags(TINY)
    made, resumed = commands(
        ["train", "CartPole-v1", *words, *short, "--out", out, "--quiet"],
        ["resume", out, "--steps", 90, "--quiet"],
        env=plugin,
    )
    assert made[0] == resumed[0] == 0, made[2] + resumed[2]
    own = {"head.components": 4, "head.atoms_per_component": 8, "head.min_sigma": 1.0}
    saved = json.loads((out / "run.json").read_text())["settings"]
    assert {name: value for name, value in saved.items() if "." in name} == own
    code = f"""
import sys
import quantail
from quantail.recipes import compose
from {PACKAGE} import GaussianMixture
of_file = compose(sys.argv[1], {{}}, base="small")
assert {{k: v for k, v in of_file.to_dict().items() if "." in k}} == {own}
for changes in (
    {{"head": {{"name": "gaussian-mixture", "components": 4, "min_sigma": "1"}}}},
    {{"head": {{"name": "{PACKAGE}:GaussianMixture", "components": 4, "min_sigma": 1}}}},
    {{"head": GaussianMixture, "head.components": "4", "head.min_sigma": 1}},
    {{"head.min_sigma": 1, "head.components": 4, "head": "gaussian-mixture"}},  # in any order
):
    assert compose("small", changes).to_dict() == of_file.to_dict() | {{"preset": "small"}}, changes
agent = quantail.train("CartPole-v1", preset="small", out=sys.argv[2], **{TINY}, **changes)
assert agent.network.head.config.components == 4
assert quantail.load(sys.argv[2]).network.head.config.min_sigma == 1.0
"""
    python(code, file, tmp_path / "again", env=plugin)


def test_a_printed_preset_reads_back_as_the_same_settings(plugin, tmp_path):
    file, printed = tmp_path / "own.toml", tmp_path / "printed.toml"
    file.write_text(
        'agent = "mixture-dqn"\nrisk = "spread:0.1,0.5"\nsteps = 5000\nlearning_starts = 500\n'
        '[head]\nname = "expectiles"\ncount = 7\n[torso]\nunits = 9\n'
    )
    (answer,) = commands(["presets", file], env=plugin)
    assert answer[0] == 0, answer[2]
    printed.write_text(answer[1])
    read = tomllib.loads(answer[1])
    assert read["head"] == {"name": f"{PACKAGE}.expectiles:Expectiles", "count": 7}
    assert read["torso"] == {"name": f"{PACKAGE}.torso:LSTMTorso", "units": 9}
    assert read["target"]["temperature"] == 0.5
    assert "# units of the LSTM (units; " in answer[1]
    code = """
import sys
from quantail.recipes import compose
first, second = (compose(path, {}) for path in sys.argv[1:])
assert first.to_dict() | {"preset": ""} == second.to_dict() | {"preset": ""}
# Another head of the user's drops the settings of the file's head.
assert "head.count" not in compose(sys.argv[1], {"head": "gaussian-mixture"}).to_dict()
"""
    python(code, file, printed, env=plugin)


def test_a_preset_from_outside_has_settings_for_a_head_from_outside(plugin):
    code = f"""
import quantail
from quantail.recipes import compose, composition
name = "{PACKAGE}.mixture:GaussianMixture"
for agent, head in (("mixture-dqn", None), ("iqn", "gaussian-mixture"), ("iqn", name)):
    changes = {{"agent": agent}} | ({{"head": head}} if head else {{}})
    config = compose("example", changes)
    assert (config.to_dict()["head.components"], config.environment.stack) == (2, 4)
    assert composition("example", changes).sources["head.components"] == "preset example"
    assert compose("small", changes).to_dict()["head.components"] == 3
    assert compose("example", changes | {{"head.components": 5}}).to_dict()["head.components"] == 5
assert compose("example", {{"agent": "mixture-dqn"}}).to_dict()["learning_rate"] == 5e-4
assert "head.components" not in compose("example", {{}}).to_dict()
quantail.register_preset("calm", quantail.Preset(like="example", target="munchausen"))
assert compose("calm", {{}}).to_dict()["n_step"] == 1  # which that target needs
"""
    python(code, env=plugin)


def test_a_study_varies_the_settings_of_a_part_from_outside(plugin, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        'games = ["CartPole-v1"]\nseeds = 1\nsteps = 2000\n'
        '[settings]\nagent = "mixture-dqn"\n[settings.torso]\nname = "lstm"\nunits = 5\n'
        '[grid]\n"head.components" = [2, 4]\nrisk = ["neutral", "spread:0.1,0.5"]\n'
        '[references]\nother = { head = { name = "expectiles", count = 3 } }\n'
    )
    code = """
import sys
from quantail.experiments import read_study
settings = [job.config for job in read_study(sys.argv[1]).jobs()]
assert [one.to_dict().get("head.components") for one in settings] == [2, 2, 4, 4, None]
assert [one.to_dict().get("head.count") for one in settings] == [None, None, None, None, 3]
assert {one.to_dict()["torso.units"] for one in settings} == {5}
"""
    python(code, file, env=plugin)


WRONG = {
    "--head.components 3": "head implicit has no setting head.components: it has none of its own.",
    "--agent mixture-dqn --head.component 3": "head gaussian-mixture has no setting head.component: its "
    "own settings are components, atoms_per_component, min_sigma. Did you mean 'components'?",
    "--agent mixture-dqn --head.components 0": "head.components takes a whole number of at least 1",
    "--agent mixture-dqn --head.components x": "head.components takes a whole number of at least 1",
    "--agent mixture-dqn --head.components": "--head.components takes a value.",
    "--agent mixture-dqn --head.min-sigma nan": "head.min_sigma takes a number of at least 0.0001",
    "--head expectiles --head.count 4": "head expectiles: count takes an odd number",
    "--head expectiles --dueling": "dueling takes a head with dueling layers, not Expectiles",
    "--head gaussian-mixure": "Did you mean 'gaussian-mixture'?",
    "--agent mixture-dqn --kappa 3": "kappa has no effect here",
    "--torzo.units 3": "unknown argument '--torzo.units'",
    "--risk spread:0.1": "spread:alpha,weight takes a fraction α from 1e-6 to 1 and a weight λ",
    "--risk spread:0.1,3": "risk spread:0.1,3 is out of range: spread:alpha,weight takes a fraction",
    "--risk spred:0.1,0.5": "Did you mean 'spread'?",
    f"--head {PACKAGE}:Nothing": "has no attribute 'Nothing'",
    f"--head {PACKAGE}:LSTMTorso": "is not a subclass of ReturnHead",
}


def test_wrong_settings_of_a_plugin_are_refused_in_one_sentence(plugin, tmp_path):
    several = [
        ["train", "CartPole-v1", *flags(TINY), "--out", tmp_path / "run", *words.split()]
        for words in WRONG
    ]
    for answer, says in zip(commands(*several, env=plugin), WRONG.values(), strict=True):
        refused(answer, says)
    assert not (tmp_path / "run").exists()


def test_a_setting_cannot_be_called_name_which_a_table_needs_for_the_part():
    class Head(ReturnHead):
        @dataclass(frozen=True)
        class Config:
            name: str = "x"

    with pytest.raises(QuantailError, match="is called name, which in a table means the head itself"):
        q.register_head("mine", Head)


# Plug-ins that fail

HEAD = """
import quantail
from quantail.networks import ReturnHead

class Head(ReturnHead):
    pass

def register():
    quantail.register_head("{}", Head)
    {}
"""
FAILING = {
    "a_first": ("", HEAD.format("shared", "")),  # the only one that works
    "b_raises": ("RuntimeError: no luck, twice", 'raise RuntimeError("no luck,\\n  twice.")'),
    "c_needs_more": ("No module named 'no_such_package'", "import no_such_package"),
    "d_exits": ("SystemExit: gone", 'import sys\nsys.exit("gone")'),
    "e_is_broken": ("SyntaxError: ", "def register(:"),
    "f_has_no_function": ("AttributeError: module 'f_has_no_function' has no attribute", ""),
    "g_built_in": (
        "head 'implicit' is built in: choose another name",
        HEAD.format("half", 'quantail.register_head("implicit", Head)'),
    ),
    "h_twice": (
        "head 'shared' is registered already: choose another name, or pass replace=True",
        HEAD.format("shared", ""),
    ),
}


def test_a_plugin_that_fails_gives_one_sentence_and_the_command_goes_on(tmp_path):
    for name, (_, code) in FAILING.items():
        broken(tmp_path / "site", name, code)
    env = searching(tmp_path / "site")
    train = ["train", "CartPole-v1", *flags(TINY), "--out", tmp_path / "run", "--quiet"]
    trained, helped, wrong = commands(
        train, ["train", "--help-all"], ["train", "--head", "half"], env=env
    )
    assert trained[0] == 0
    lines = trained[2].splitlines()
    for (name, (why, _)), line in zip(list(FAILING.items())[1:], lines[:7], strict=True):
        start = f"quantail: the plug-in {name} ({name}:register) could not be loaded, so its parts are "
        assert line.startswith(f"{start}not available: {why}"), line
        assert line.endswith(".")
    assert "plug-in" not in "".join(lines[7:])  # each is named once
    assert "done     80 steps" in trained[2]
    assert "|shared|module:Class" in helped[1]  # nothing is left of a plug-in that failed halfway
    said = refused(wrong, "unknown head 'half': it takes expected")
    assert "The plug-in g_built_in could not be loaded: head 'implicit' is built in" in said


def test_in_python_a_plugin_that_fails_causes_a_warning(tmp_path):
    broken(tmp_path / "site", "fails", "raise ValueError('no')")
    code = """
import warnings
import quantail
from quantail.recipes import compose
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    compose("small", {"agent": "iqn"})
    quantail.registry.parts("head")
    quantail.registry.parts("head")
assert [str(one.message) for one in heard] == [
    "the plug-in fails (fails:register) could not be loaded, so its parts are not available: "
    "ValueError: no."
], heard
"""
    python(code, env=searching(tmp_path / "site"))


def test_a_plugin_may_look_up_parts_while_it_is_loaded(tmp_path):
    body = """
import quantail
from quantail.recipes import compose
from quantail.risk import parse_risk

def register():
    assert "iqn" in quantail.registry.parts("agent")
    config = compose("small", {"head": "quantiles"})
    recipe = quantail.Recipe(head=config.head.name, n_step=config.learner.n_step)
    quantail.register_agent("curious", recipe)
"""
    broken(tmp_path / "site", "curious", body)
    (answer,) = commands(["agents", "curious"], env=searching(tmp_path / "site"))
    assert answer[0] == 0
    assert answer[2] == ""


def test_a_plugin_in_the_working_folder_is_not_loaded(tmp_path):
    broken(tmp_path, "lurking", "raise RuntimeError('loaded')")
    (tmp_path / "mine.py").write_text("import torch\n")
    answers = commands(
        ["eval", "run", "--trust", "mine"],
        ["train", "CartPole-v1", "--head", "mine:Head"],
        env=searching(),
        cwd=tmp_path,
    )
    refused(answers[0], "there is no run at run.")
    refused(answers[1], "head 'mine:Head' cannot be imported (AttributeError: module 'mine' has no")
