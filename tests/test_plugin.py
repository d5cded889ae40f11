"""A stranger's package, installed in a folder of its own, extends Quantail in other processes."""

import json
import shutil
import signal

import pytest

from tests.helpers.plugins import PACKAGE, commands, contents, importable, python, refused, searching
from tests.helpers.risks import RISKS
from tests.helpers.runs import flags, kill_when, rows, same_learning

TINY = {
    "steps": 300,
    "learning_starts": 60,
    "epsilon_steps": 100,
    "buffer_size": 150,
    "target_update_interval": 40,
    "evaluation_every": 150,
    "evaluation_episodes": 2,
    "log_every": 20,
    "checkpoint_every": 50,
    "batch_size": 8,
    "head_size": 16,
    "stack": 2,
    "threads": 1,
}
EVERYTHING = ["--double", "--n-step", "3", "--sampler", "prioritized", "--noisy"]
MIXTURE = ["--head", "gaussian-mixture", "--head.components", "2"]
EXPECTILES = ["--head", "expectiles", "--head.count=5"]
LSTM = ["--torso", "lstm", "--torso.units", "8"]
RUNS = {
    # With the target and the risk measure of the plug-in, too.
    "mixture": ["--agent", "mixture-dqn", *MIXTURE, *LSTM, *EVERYTHING, "--risk", "spread:0.3,0.5"],
    "expectiles": [*EXPECTILES, *LSTM, *EVERYTHING],
    "soft-mixture": [*MIXTURE, *LSTM, "--target", "munchausen", "--n-step", "1"],
    "soft-expectiles": [*EXPECTILES, *LSTM, "--target", "munchausen", "--n-step", "1"],
}
NAMES = {
    "torso": f"{PACKAGE}.torso:LSTMTorso",
    "head": f"{PACKAGE}.mixture:GaussianMixture",
    "target": f"{PACKAGE}.target:SoftmaxTarget",
    "risk": f"{PACKAGE}.risk:Spread:0.3,0.5",
}


@pytest.fixture(scope="module")
def unregistered(tmp_path_factory):
    """Return the environment of a process that can import the package, which is not installed."""
    return searching(importable(tmp_path_factory.mktemp("plain")))


def training(name, out):
    return ["train", "CartPole-v1", *RUNS[name], *flags(TINY), "--out", out]


@pytest.fixture(scope="module")
def trained(plugin, tmp_path_factory):
    """Train every run; return their folder, and what the command said for each."""
    folder = tmp_path_factory.mktemp("runs")
    answers = commands(*(training(name, folder / name) for name in RUNS), env=plugin)
    for status, _, err in answers:
        assert status == 0, err
    return folder, {name: err for name, (_, _, err) in zip(RUNS, answers, strict=True)}


# What is known


def test_commands_list_the_parts_of_a_plugin_only_in_a_process_that_has_it(plugin):
    asked = [
        ("agents", "mixture-dqn"),
        ("presets", "example"),
        ("risks", "spread:alpha,weight"),
        ("train --help-all", "gaussian-mixture|expectiles|module:Class"),
        ("train --help-all", "mlp|lstm|module:Class"),
        ("train --agent mixture-dqn --help-all", "--target.temperature X"),
    ]
    with_it = commands(*(words.split() for words, _ in asked), env=plugin)
    without = commands(*(words.split() for words, _ in asked), env=searching())
    for (words, expected), here, there in zip(asked, with_it, without, strict=True):
        assert (here[0], here[2]) == (0, ""), words
        assert expected in here[1], words
        assert expected not in there[1], words
    refused(without[-1], "unknown agent 'mixture-dqn'")


def test_help_explains_the_settings_of_a_part_from_outside(plugin):
    words = [
        "train",
        "--agent",
        "mixture-dqn",
        "--preset",
        "example",
        "--head.min-sigma",
        "0.1",
        "--help-all",
    ]
    (said,) = commands(words, env=plugin)
    text = " ".join(said[1].split())
    assert "--head.components N number of Gaussians of each action (preset example) [2]" in text
    assert "least standard deviation of a Gaussian (return; you) [0.1]" in text
    assert "--torso.units N units of the LSTM (units) [32]" in text
    assert "only with target bellman or softmax" in text  # whose Config extends Quantail's own


# Runs


def test_a_killed_and_resumed_run_of_a_plugin_equals_an_uninterrupted_one(trained, plugin, tmp_path):
    for name in RUNS:
        out = tmp_path / name
        status, said = kill_when(
            lambda out=out: len(rows(out, "metrics")) >= 7, *training(name, out), env=plugin
        )
        assert status == -signal.SIGKILL, said
        assert (out / "checkpoints/last").exists()
        assert not (out / "checkpoints/000000300").exists()
    for answer in commands(*(["resume", tmp_path / name] for name in RUNS), env=plugin):
        assert answer[0] == 0, answer[2]
    for name in RUNS:
        assert same_learning(trained[0] / name, tmp_path / name), name


def test_a_run_remembers_module_class_and_its_own_settings_and_shows_short_names(trained):
    folder, said = trained
    settings = json.loads((folder / "mixture/run.json").read_text())["settings"]
    assert {name: settings[name] for name in NAMES} == NAMES
    assert (settings["torso.units"], settings["head.components"]) == (8, 2)
    assert (settings["head.min_sigma"], settings["target.temperature"]) == (0.05, 0.5)
    assert PACKAGE not in said["mixture"]  # neither for display nor for --trust
    assert "risk measure spread:0.3,0.5" in said["mixture"]
    assert "iqn with expectiles head, with lstm torso" in said["expectiles"]


def test_returns_of_a_plugins_heads_answer_every_question(trained, plugin):
    code = """
import sys
import numpy as np
import quantail
from quantail.distributions import ReturnDistribution
for run in sys.argv[1:]:
    agent = quantail.load(run)
    observations = np.random.default_rng(0).normal(size=(5, 2, 4)).astype(np.float32)
    returns = agent.returns(observations)
    taus = (np.arange(4000) + 0.5) / 4000
    quantiles = returns.quantile(taus)  # [5, taus, actions]
    assert quantiles.shape == (5, 4000, 2)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    np.testing.assert_allclose(returns.mean(), quantiles.mean(axis=1), rtol=5e-3, atol=5e-3)
    np.testing.assert_allclose(returns.std(), quantiles.std(axis=1), rtol=2e-2, atol=1e-3)
    np.testing.assert_allclose(
        returns.value("cvar:0.25"), quantiles[:, :1000].mean(axis=1), rtol=5e-3, atol=5e-3
    )
    assert (returns.value("spread:0.25,0.5") <= returns.mean() + 1e-5).all()
    middle = returns.quantile(0.5)[0]
    assert 0.4 < returns.cdf(middle[0])[0, 0] <= 0.75
    assert returns.sample(7, seed=0).shape == (5, 7, 2)
    assert agent.act(observations[0]) in (0, 1)
"""
    folder, _ = trained
    python(code, *(folder / name for name in RUNS), env=plugin)


EXAMPLES = {name: texts[0] for name, texts in RISKS.items()} | {"spread": "spread:0.1,0.5"}


def test_a_plugins_runs_are_evaluated_under_every_measure_and_calibrated(trained, plugin):
    folder, _ = trained
    runs = [folder / "mixture", folder / "expectiles"]
    several = [["risks"]]
    for run in runs:
        several.append(["calibrate", run, "--episodes", 4, "--states", 1])
        several += [["eval", run, "--episodes", 1, "--risk", text] for text in EXAMPLES.values()]
    answers = commands(*several, env=plugin)
    for answer in answers:
        assert answer[0] == 0, answer[2]
    listed = [line.split()[0].partition(":")[0] for line in answers[0][1].splitlines()[1:]]
    assert set(listed) - {"utility", "module"} == set(EXAMPLES)  # none is left out above
    for run in runs:
        measured = {json.loads(path.read_text())["risk"] for path in (run / "results").glob("*.json")}
        assert len(measured) == len(EXAMPLES)
        assert (run / "calibration.json").exists()


def test_a_plugins_measure_can_be_annealed_and_given_as_an_object(plugin, tmp_path):
    code = f"""
import sys
import quantail
from {PACKAGE}.risk import Spread
settings = dict(steps=120, learning_starts=60, evaluation_episodes=1, evaluation_every=120, threads=1)
agent = quantail.train(
    "CartPole-v1", risk=Spread(0.3, 0.5), risk_anneal_steps=50, out=sys.argv[1], n_step=1, **settings
)
assert agent.config.risk.risk == "{NAMES["risk"]}"
resumed = quantail.resume(sys.argv[1], steps=130)
assert resumed.risk == Spread(0.3, 0.5)
"""
    python(code, tmp_path / "run", env=plugin)


def test_runs_that_differ_in_a_setting_of_a_part_are_told_apart(plugin, tmp_path):
    short = flags(TINY | {"steps": 80, "evaluation_every": 80})
    several = []
    for count in (3, 5):
        run = tmp_path / str(count)
        head = ["--head", "expectiles", "--head.count", count]
        several.append(["train", "CartPole-v1", *head, *short, "--out", run, "--quiet"])
        several.append(["eval", run, "--episodes", 1])
    *made, scores = commands(*several, ["scores", tmp_path / "3", tmp_path / "5"], env=plugin)
    assert all(answer[0] == 0 for answer in made), made
    assert scores[0] == 0, scores[2]
    for count in (3, 5):
        assert f"head.count {count}" in " ".join(scores[1].split())


# Trust


def test_a_run_needs_trust_where_its_package_is_not_installed(trained, unregistered, tmp_path):
    run = shutil.copytree(trained[0] / "mixture", tmp_path / "run")
    one = f"{PACKAGE}.torso"
    alone, partly, evaluated, resumed = commands(
        ["eval", run, "--episodes", 1],
        ["eval", run, "--episodes", 1, "--trust", one],
        ["eval", run, "--episodes", 1, "--trust", PACKAGE],
        ["resume", run, "--steps", 320, "--trust", PACKAGE],
        env=unregistered,
    )
    asked = f"give --trust {PACKAGE} (or trust=['{PACKAGE}'] in Python) if you trust their code."
    said = refused(alone, asked)
    for kind in ("torso", "head", "target"):
        assert NAMES[kind].partition(":")[0] in said  # one sentence for all
    assert one not in refused(partly, asked)
    assert evaluated[0] == 0, evaluated[2]
    assert resumed[0] == 0, resumed[2]
    assert f"quantail eval {run} --episodes 100 --trust {PACKAGE}\n" in resumed[2]


def test_a_run_whose_package_is_gone_says_so_and_loses_nothing(trained):
    run = trained[0] / "mixture"
    before = contents(run)
    several = [["eval", run], ["resume", run, "--steps", 400], ["calibrate", run]]
    several.append(["eval", run, "--trust", PACKAGE])
    for answer in commands(*several, env=searching()):
        refused(
            answer,
            f"{run / 'run.json'} names the torso '{NAMES['torso']}', but there is no module {PACKAGE} "
            "here: install the package that brings it.",
        )
    assert contents(run) == before
