"""An environment family, a protocol and a callback of a stranger's package, in other processes."""

import json
import signal

import pytest

from tests.helpers.plugins import PACKAGE, commands, contents, python, refused, searching
from tests.helpers.runs import flags, kill_when, rows, same_learning
from tests.helpers.studies import study_file

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
    "threads": 1,
}
ENV = "tightrope:7"


def training(out):
    return ["train", ENV, *flags(TINY), "--out", out]


@pytest.fixture(scope="module")
def run(plugin, tmp_path_factory):
    """Train on the command line, by the id alone."""
    out = tmp_path_factory.mktemp("runs") / "tightrope"
    ((status, _, err),) = commands(training(out), env=plugin)
    assert status == 0, err
    return out


def test_an_id_of_a_plugins_family_trains_with_the_preset_of_the_family(run):
    saved = json.loads((run / "run.json").read_text())
    assert (saved["env"], saved["settings"]["preset"]) == (ENV, "tightrope")
    assert saved["settings"]["max_episode_steps"] == 50
    lengths = [int(row.split(",")[5]) for row in rows(run, "episodes")]
    assert max(lengths) <= 50


def test_a_killed_and_resumed_run_of_a_plugins_family_equals_an_uninterrupted_one(run, plugin, tmp_path):
    out = tmp_path / "run"
    status, said = kill_when(lambda: len(rows(out, "metrics")) >= 7, *training(out), env=plugin)
    assert status == -signal.SIGKILL, said
    assert not (out / "checkpoints/000000300").exists()
    ((status, _, err),) = commands(["resume", out], env=plugin)  # the id needs no --trust
    assert status == 0, err
    assert same_learning(run, out)


def test_a_plugins_protocol_is_listed_played_and_saved(run, plugin):
    shown, made = commands(
        ["eval", "--help"],
        ["eval", run, "--protocol", "unsteady", "--episodes", 3, "--json"],
        env=plugin,
    )
    about = "random actions with probability 0.2; 20 episodes, which end after 30 frames at the latest"
    assert f"unsteady, {about}" in " ".join(shown[1].split())
    assert made[0] == 0, made[2]
    result = json.loads(made[1])
    assert (result["protocol"]["name"], result["epsilon"], result["episodes"]) == ("unsteady", 0.2, 3)
    assert max(result["lengths"]) <= 30
    assert any(path.name.startswith("unsteady") for path in (run / "results").iterdir())


def test_protocols_that_the_family_does_not_take_or_nobody_knows_are_refused(run, plugin):
    ale, unknown = commands(
        ["eval", run, "--protocol", "no-op"], ["eval", run, "--protocol", "unstedy"], env=plugin
    )
    refused(
        ale,
        "protocol no-op is for ALE games, because it has no_ops 30 and action_repeat 4: "
        "use own, human-starts or unsteady here.",
    )
    refused(unknown, "sticky, human-starts or unsteady, not 'unstedy'. Did you mean 'unsteady'?")


def test_actions_have_the_names_of_the_family_and_a_function_has_none(plugin):
    code = f"""
import quantail
from {PACKAGE}.tightrope import Tightrope
assert quantail.make("{ENV}").action_names() == ["wait", "walk"]
assert quantail.make(lambda: Tightrope(3)).action_names() == ["action 0", "action 1"]
"""
    python(code, env=plugin)


def test_a_registered_callback_is_found_by_its_name_and_records_its_column(plugin, tmp_path):
    code = """
import sys
from pathlib import Path
import quantail
from quantail import registry
from quantail.runs.tables import read_rows
watch = registry.find("callback", "longest-episode")()
short = dict(steps=120, learning_starts=60, evaluation_episodes=1, evaluation_every=120, log_every=40)
quantail.train("tightrope:5", out=sys.argv[1], callbacks=[watch], threads=1, **short)
rows = read_rows(Path(sys.argv[1]) / "metrics.csv")
assert max(float(row["longest_episode"] or 0) for row in rows) == watch.longest > 0, rows
"""
    python(code, tmp_path / "run", env=plugin)


def test_an_environment_that_a_plugins_family_cannot_make_is_refused_in_one_sentence(plugin, tmp_path):
    (answer,) = commands(["train", "tightrope:long", "--out", tmp_path / "run"], env=plugin)
    refused(
        answer,
        "tightrope:long cannot be made by the environment family tightrope: ValueError: the length of "
        "a rope takes a whole number of at least 1, not 'long'.",
    )
    assert not (tmp_path / "run").exists()


def test_doctor_lists_the_family_of_a_plugin(plugin):
    (answer,) = commands(["doctor"], env=plugin)
    assert "family tightrope: registered" in answer[1]


def test_a_study_file_may_name_an_id_of_a_plugins_family_without_trust(plugin, tmp_path):
    file = study_file(
        tmp_path,
        """
        games = ["tightrope:4"]
        seeds = 1
        ---
        [grid]
        n_step = [1, 2]
        """,
    )
    words = ["study", "grid", file, "--jobs", 1, "--steps", 80, "--yes", "--quiet"]
    (answer,) = commands(words, env=plugin, cwd=tmp_path)
    assert answer[0] == 0, answer[2]
    assert len(list(tmp_path.glob("studies/tiny/runs/*/run.json"))) == 2


def test_a_run_of_a_family_that_is_gone_says_so_and_loses_nothing(run):
    before = contents(run)
    for answer in commands(["eval", run], ["resume", run, "--steps", 400], env=searching()):
        refused(answer, "tightrope")
    assert contents(run) == before
