import json
import re
import subprocess
import sys

import pytest

from quantail import registry
from quantail.cli.doctor import CHECKS
from quantail.cli.main import COMMANDS
from quantail.config import flat_settings
from quantail.envs.families import FALLBACK, all_families
from quantail.envs.family import EnvFamily
from quantail.extras import EXTRAS
from quantail.recipes import PRESETS, compose
from tests.helpers.configs import labelled
from tests.helpers.runs import QUICK, command, flags


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "run"
    settings = flags(QUICK["CartPole-v1"] | {"steps": 120})
    assert command("train", "CartPole-v1", "--quiet", "--out", run, *settings) == 0
    return run


def test_training_ends_with_scores_times_and_suggested_commands(tmp_path, capsys):
    run = tmp_path / "run"
    assert (
        command("train", "CartPole-v1", "--out", run, *flags(QUICK["CartPole-v1"] | {"steps": 120})) == 0
    )
    said = " ".join(capsys.readouterr().err.split())
    for part in (
        "environment CartPole-v1",
        "preset small",
        "of memory",
        "random actions mean return",
        "with random actions (not discounted)",
        "best",
        "acting",
        "learning",
        f"quantail eval {run}",
        f"quantail resume {run}",
    ):
        assert part in said, part


def test_eval_prints_a_score_or_json_and_is_reproducible(trained, capsys):
    assert command("eval", trained, "--episodes", 5, "--seed", 3) == 0
    assert "over 5 episodes" in capsys.readouterr().out
    words = ("eval", trained, "--episodes", 5, "--risk", "cvar:0.1", "--checkpoint", "last", "--json")
    answers = []
    for _ in range(2):
        assert command(*words) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]
    assert answers[0]["risk"] == "cvar:0.1"
    assert answers[0]["checkpoint"] == 120
    assert len(answers[0]["returns"]) == 5


def test_every_setting_is_an_option_with_its_unit_and_source(capsys):
    assert command("train", "ALE/Pong-v5", "--help-all") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "preset atari-paper" in said
    config = compose("atari-paper", {})
    for name in flat_settings():
        assert f"--{name.replace('_', '-')}" in said
        if name != "preset":
            assert " ".join(config.about(name).help.split()) in said
    assert "[27,000]" in said
    assert "(steps; DQN, Mnih et al. 2015" in said


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"train", "study"}))
def test_every_command_has_help(name, capsys):
    with pytest.raises(SystemExit) as end:
        command(name, "--help")
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert f"usage: quantail {name}" in said
    assert not re.search("[α-ω]", said)  # a flag is typed, and so is the word that explains it


def test_a_preset_printed_to_a_file_trains_with_the_same_settings(tmp_path, capsys):
    for name in PRESETS:
        assert command("presets", name) == 0
        file = tmp_path / f"{name}.toml"
        file.write_text(capsys.readouterr().out, encoding="utf-8")
        assert compose(str(file), {}, base=name) == labelled(compose(name, {}), file)
    own = tmp_path / "own.toml"
    own.write_text(
        "head_size = 16\nsteps = 30\nlearning_starts = 20\nmlp_sizes = [8]\n", encoding="utf-8"
    )
    run = tmp_path / "run"
    words = ("--quiet", "--buffer-size", 100, "--evaluation-episodes", 1)
    assert command("train", "CartPole-v1", "--preset", own, "--out", run, *words) == 0
    info = json.loads((run / "run.json").read_text())
    assert (info["settings"]["preset"], info["settings"]["head_size"]) == (str(own), 16)
    # Settings that the file does not name come from the preset for the environment.
    assert info["settings"]["target_update_interval"] == 500


def test_list_commands_print_all_names(capsys):
    for name, expected in (("agents", "iqn"), ("risks", "cvar:η"), ("presets", "minatar")):
        assert command(name) == 0
        assert expected in capsys.readouterr().out


def test_doctor_finds_everything_that_is_needed(capsys):
    assert command("doctor") == 0
    said = capsys.readouterr().out
    plain = [family for family in all_families() if not family.extra and family.name != FALLBACK]
    assert said.count("ok ") == len(CHECKS) + len(plain) + len(EXTRAS)
    assert "family worlds: 5 worlds, RiskyBandit works" in said
    assert "missing" not in said


def test_doctor_asks_every_family_but_the_fallback_for_its_check(capsys, monkeypatch):
    monkeypatch.setattr(registry, "_registered", {kind: {} for kind in registry.KINDS})
    # Two families may need one extra.
    for name, extra in (("mine", ""), ("games", "atari")):
        registry.register("family", name, type(name, (EnvFamily,), {"extra": extra}))
    asked = []
    for name, family in registry.parts("family").items():
        monkeypatch.setattr(family, "check", lambda self, name=name: asked.append(name) or "works")
    assert command("doctor") == 0
    assert sorted(asked) == sorted(set(registry.parts("family")) - {FALLBACK})
    assert "family mine: works" in capsys.readouterr().out


def test_doctor_explains_an_absent_optional_package_and_succeeds(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)  # as if it were not installed
    assert command("doctor") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "absent play (quantail play) needs pygame: pip install 'quantail[play]'." in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["trian"], "Did you mean 'train'"),
        (["train", "CartPol-v1"], "Did you mean 'CartPole-v1'"),
        (["train", "Pendulum-v1"], "Box actions"),
        (["train", "CartPole-v1", "--agent", "iqm"], "Did you mean 'iqn'"),
        (["train", "CartPole-v1", "--risk", "cvar:2"], "risk cvar:2 is out of range"),
        (["train", "CartPole-v1", "--lerning-rate", "1"], "Did you mean '--learning-rate'"),
        (["train", "CartPole-v1", "--learn", "1"], "unknown argument '--learn'"),
        (["train", "CartPole-v1", "--lr", "1"], "unknown argument '--lr'. See"),
        (["train", "gymnasium.envs:CartPol-v1"], "Did you mean 'gymnasium.envs:CartPole-v1'"),
        (["train", "CartPole-v1", "--batch-size", "1.5"], "batch_size takes a whole number"),
        (["train", "CartPole-v1", "--preset", "smol"], "Did you mean 'small'"),
        (["train", "CartPole-v1", "--steps"], "expected one argument"),
        (["eval", "nowhere"], "there is no run at nowhere"),
        (["eval", ".", "--episodes", "none"], "episodes takes a whole number of at least 1"),
        (["eval", ".", "--epsilon", "2"], "epsilon takes a number from 0 to 1"),
        (["resume"], "the following arguments are required: RUN"),
        (["agents", "rainbo"], "Did you mean 'rainbow'"),
        (["risks", "extra"], "unknown argument 'extra'"),
    ],
    ids=" ".join,
)
def test_a_mistake_gets_one_sentence_and_a_nonzero_status(words, says, capsys):
    assert command(*words) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.startswith("quantail: ")
    assert said.count("\n") == 1


def test_help_does_not_import_torch():
    code = (
        "import sys; from quantail.cli.main import run; run(['--help']); print('torch' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "False"
    assert "quantail train" in answer.stdout
