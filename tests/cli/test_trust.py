"""Files do not run code: a module named in a file is imported only if the user names it too."""

import json
import tomllib
from contextlib import suppress

import pytest

import quantail as q
from quantail.errors import QuantailError
from quantail.experiments import read_study, run_study
from quantail.experiments.folder import StudyFolder
from quantail.viewing import draw_overview, write_report
from quantail.viewing.live.registry import RunRegistry
from quantail.viewing.studies import draw_study
from tests.helpers.runs import QUICK, command, flags
from tests.helpers.studies import study_file
from tests.helpers.trust import REFUSED, changed_run, findable_marked, forget_marked

ENV, RISK = "marked:Marked-v0", "marked:beta"
INSPECTING = {
    "eval": ["--episodes", 1],
    "calibrate": ["--episodes", 2, "--states", 0],
    "risk-profile": ["--episodes", 2, "--risk", "neutral"],
    "video": ["--steps", 2, "--out", "VIDEO"],
    "watch": [
        "--no-browser",
        "--host",
        "203.0.113.1",
    ],  # not an address of this machine, so the server cannot start
}
RISKS = ("risk", "behaviour_risk", "target_risk", "evaluation_risk")


@pytest.fixture
def mark(tmp_path, monkeypatch):
    with findable_marked(tmp_path, monkeypatch) as path:
        yield path


def refused(words, capsys, mark):
    status = command(*words)
    said = capsys.readouterr().err
    assert status == 2, said
    assert REFUSED in said
    assert said.count("\n") == 1
    assert not mark.exists()
    return said


@pytest.mark.parametrize("changes", [{"env": ENV}, {"evaluation_risk": RISK}], ids=["env", "risk"])
@pytest.mark.parametrize("name", INSPECTING)
def test_inspecting_a_run_imports_no_module_that_it_names(
    name, changes, cartpoles, tmp_path, mark, capsys
):
    run = changed_run(cartpoles / "iqn-0", tmp_path / "run", **changes)
    more = [str(tmp_path / "film.mp4") if word == "VIDEO" else word for word in INSPECTING[name]]
    said = refused([name, run, *more], capsys, mark)
    assert f"{run / 'run.json'} {REFUSED}" in said


@pytest.mark.parametrize("changes", [{"env": ENV}, *({name: RISK} for name in RISKS)], ids=str)
def test_resuming_a_run_imports_no_module_that_it_names(changes, cartpoles, tmp_path, mark, capsys):
    run = changed_run(cartpoles / "iqn-0", tmp_path / "run", **changes)
    refused(["resume", run, "--steps", 220, "--quiet"], capsys, mark)


@pytest.mark.parametrize("name", [name for name in INSPECTING if name != "watch"])
def test_a_run_whose_modules_are_trusted_can_be_inspected(name, cartpoles, tmp_path, mark, capsys):
    run = changed_run(cartpoles / "iqn-0", tmp_path / "run", env=ENV, evaluation_risk=RISK)
    more = [str(tmp_path / "film.mp4") if word == "VIDEO" else word for word in INSPECTING[name]]
    assert command(name, run, *more, "--trust", "other", "--trust", "marked") == 0
    assert mark.exists()


def test_a_run_whose_modules_are_trusted_is_resumed(cartpoles, tmp_path, mark):
    changes = dict.fromkeys(RISKS, RISK) | {"env": ENV}
    run = changed_run(cartpoles / "iqn-0", tmp_path / "run", **changes)
    assert command("resume", run, "--steps", 220, "--quiet", "--trust", "marked") == 0
    assert mark.exists()


def test_a_module_named_on_the_command_line_is_trusted(cartpoles, tmp_path, mark):
    run = changed_run(cartpoles / "iqn-0", tmp_path / "run", env=ENV)
    assert command("eval", run, "--episodes", 1, "--risk", RISK) == 0


def test_a_report_omits_what_needs_an_untrusted_module_and_says_why(cartpoles, tmp_path, mark, capsys):
    run = changed_run(cartpoles / "iqn-0", tmp_path / "run", env=ENV, evaluation_risk=RISK)
    assert command("report", run, "--out", tmp_path / "page") == 0
    assert f"left out: {run / 'run.json'} {REFUSED}" in capsys.readouterr().out
    page = (tmp_path / "page/index.html").read_text()
    assert "names the module marked" in page
    assert not mark.exists()
    assert command("report", run, "--out", tmp_path / "page", "--trust", "marked") == 0
    assert "left out" not in capsys.readouterr().out
    assert mark.exists()


def test_scores_and_compare_need_no_module(cartpoles, tmp_path, mark):
    run = changed_run(cartpoles / "iqn-0", tmp_path / "run", env=ENV, evaluation_risk=RISK)
    command("scores", run)
    command("compare", run, "--with", run)
    assert not mark.exists()


def test_a_registered_id_is_created_without_importing_its_module(cartpoles, tmp_path, mark, capsys):
    run = changed_run(cartpoles / "iqn-0", tmp_path / "run", env="marked:CartPole-v1")
    assert command("eval", run, "--episodes", 1) == 0
    assert command("resume", run, "--steps", 220, "--quiet") == 0
    assert not mark.exists()


# From Python


def test_in_python_passing_trust_or_the_environment_or_the_measure_is_enough(cartpoles, tmp_path, mark):
    run = changed_run(cartpoles / "iqn-0", tmp_path / "run", env=ENV, evaluation_risk=RISK)
    with pytest.raises(QuantailError, match="names the module marked"):
        q.load(run)
    agent = q.load(run, risk="neutral")  # acting needs no environment
    with pytest.raises(QuantailError, match="names the module marked"):
        q.evaluate(agent, episodes=1)
    with pytest.raises(QuantailError, match="names the module marked"):
        draw_overview(run, tmp_path / "run.png")
    with pytest.raises(QuantailError, match="names the module marked"):
        q.resume(run, steps=220)
    assert not mark.exists()
    assert q.evaluate(agent, "CartPole-v1", episodes=1).env == "CartPole-v1"
    assert not mark.exists()
    assert q.evaluate(agent, ENV, episodes=1).env == ENV
    assert mark.exists()
    assert str(q.load(run, trust=["marked"]).risk) == RISK
    q.evaluate(q.load(run, trust="marked"), episodes=1)
    draw_overview(run, tmp_path / "run.png", trust=["marked"])
    write_report([run], trust=["marked"])
    q.resume(run, steps=220, env=ENV)
    assert RunRegistry([run], ["marked"]).agent(0, None).env == ENV


def test_an_already_imported_module_provides_its_ids_but_not_its_functions(cartpoles, tmp_path, mark):
    with_env = changed_run(cartpoles / "iqn-0", tmp_path / "a", env=ENV)
    with_risk = changed_run(cartpoles / "iqn-0", tmp_path / "b", evaluation_risk=RISK)
    __import__("marked")
    assert q.evaluate(q.load(with_env), episodes=1).env == ENV
    with pytest.raises(QuantailError, match="names the module marked"):
        q.load(with_risk)


def test_training_needs_no_trust_and_suggests_it_for_the_next_commands(tmp_path, mark, capsys):
    settings = QUICK["CartPole-v1"] | {"steps": 80, "evaluation_risk": RISK}
    assert command("train", ENV, "--out", tmp_path / "run", *flags(settings)) == 0
    said = capsys.readouterr().err
    assert f"quantail resume {tmp_path / 'run'} --steps 160 --trust marked" in said
    assert f"quantail report {tmp_path / 'run'} --trust marked" in said


# Presets


@pytest.mark.parametrize("name", RISKS)
def test_a_preset_file_imports_no_module_that_it_names(name, tmp_path, mark, capsys):
    preset = tmp_path / "own.toml"
    preset.write_text(f'{name} = "{RISK}"\n')
    out = tmp_path / "run"
    words = ["train", "CartPole-v1", "--preset", preset, "--out", out, "--quiet"]
    words += flags(QUICK["CartPole-v1"] | {"steps": 80})
    assert f"{preset} {REFUSED}" in refused(words, capsys, mark)
    assert not out.exists()
    assert command("presets", preset) == command("agents", "iqn", "--preset", preset) == 0
    assert not mark.exists()
    assert command(*words, "--trust", "marked") == 0
    assert mark.exists()


def test_a_preset_file_may_name_the_modules_that_the_user_names(tmp_path, mark):
    preset = tmp_path / "own.toml"
    preset.write_text(f'behaviour_risk = "{RISK}"\n')
    settings = QUICK["CartPole-v1"] | {"steps": 80}
    with pytest.raises(QuantailError, match="names the module marked"):
        q.train("CartPole-v1", preset=str(preset), out=tmp_path / "none", **settings)
    q.train("CartPole-v1", preset=str(preset), out=tmp_path / "a", trust=["marked"], **settings)
    q.train("CartPole-v1", preset=str(preset), out=tmp_path / "b", risk=RISK, **settings)
    q.train(ENV, preset=str(preset), out=tmp_path / "c", **settings)


# Studies


STUDIES = {
    "games": f'games = ["{ENV}"]\n---\n[grid]\nkappa = [1.0]',
    "settings": f'games = ["CartPole-v1"]\n---\ntarget_risk = "{RISK}"\n[grid]\nkappa = [1.0]',
    "axis": f'games = ["CartPole-v1"]\n---\n[grid]\nrisk = ["neutral", "{RISK}"]',
    "reference": f'games = ["CartPole-v1"]\n---\n[references]\nmine = {{ behaviour_risk = "{RISK}" }}',
    "registered": 'games = ["marked:CartPole-v1"]\n---\n[grid]\nkappa = [1.0]',
}


@pytest.mark.parametrize("text", STUDIES.values(), ids=STUDIES)
def test_a_study_imports_no_module_that_its_file_or_folder_names(text, tmp_path, mark, capsys):
    file, out = study_file(tmp_path, text), tmp_path / "out"
    refused(["study", "grid", file, "--out", out], capsys, mark)
    assert not out.exists()

    folder = StudyFolder(out, ["marked"])
    folder.open(read_study(file, trust=["marked"]))
    forget_marked()
    mark.unlink(missing_ok=True)
    assert "origin" not in (out / "study.json").read_text()
    for name in ("status", "resume", "figures"):
        said = refused(["study", name, out], capsys, mark)
        assert f"{out / 'study.json'} {REFUSED}" in said
    assert command("study", "status", out, "--trust", "marked") == 0
    assert f"study resume {out} --trust marked" in capsys.readouterr().out.replace("\n", "")


def test_a_study_file_cannot_grant_trust_to_itself(tmp_path, mark, capsys):
    out = tmp_path / "out"
    StudyFolder(out, ["marked"]).open(
        read_study(study_file(tmp_path, STUDIES["axis"]), trust=["marked"])
    )
    content = json.loads((out / "study.json").read_text())
    content["study"] |= {"origin": None}
    (out / "study.json").write_text(json.dumps(content))
    refused(["study", "status", out], capsys, mark)


def test_modules_named_in_options_of_a_study_are_trusted(tmp_path, mark):
    text = 'games = ["CartPole-v1"]\n---\n[grid]\nrisk = ["neutral"]'
    file, out = study_file(tmp_path, text), tmp_path / "out"
    words = ["--steps", 60, "--measures", RISK, "--set", f"target_risk={RISK}", "--quiet"]
    assert command("study", "grid", file, "--out", out, *words) == 0
    assert (out / "figures/distortions.png").exists()  # which calls the measure


def test_the_processes_of_a_study_inherit_its_trust(tmp_path, mark, capsys):
    text = f'games = ["{ENV}"]\n---\nbehaviour_risk = "{RISK}"\n[grid]\nkappa = [1.0]'
    file, out = study_file(tmp_path, text), tmp_path / "out"
    words = ["--out", out, "--steps", 100, "--quiet", "--trust", "marked"]
    assert command("study", "grid", file, *words) == 0
    assert command("study", "grid", file, *words, "--seeds", 2) == 0
    assert command("study", "figures", out, "--trust", "marked") == 0
    capsys.readouterr()
    forget_marked()
    mark.unlink()
    refused(["study", "resume", out], capsys, mark)


def test_a_study_made_in_python_is_trusted(tmp_path, mark):
    file = study_file(tmp_path, STUDIES["games"])
    written = read_study(file, trust=["marked"]).to_dict()
    study = type(read_study("samples")).from_dict(written)
    assert run_study(study, tmp_path / "out").done == 1
    with pytest.raises(QuantailError, match="names the module marked"):
        draw_study(tmp_path / "out")
    assert draw_study(tmp_path / "out", ["marked"])


# The option itself


@pytest.mark.parametrize(
    "name", ["train", "resume", "eval", "report", "video", "watch", "calibrate", "risk-profile"]
)
def test_help_explains_trust(name, capsys):
    with suppress(SystemExit):
        command(name, "--help-all" if name == "train" else "--help")
    said = " ".join(capsys.readouterr().out.split())
    assert "--trust MODULE import this module, and so run its code, where" in said


@pytest.mark.parametrize("words", [["eval", "RUN"], ["study", "status", "RUN"], ["report", "RUN"]])
def test_trust_takes_a_module_not_a_file(words, cartpoles, capsys):
    run = cartpoles / "iqn-0"
    assert command(*[run if word == "RUN" else word for word in words], "--trust", "./x.py") == 2
    assert "trust takes the name of a module, such as my_envs, not './x.py'." in capsys.readouterr().err


def test_shipped_studies_and_presets_name_no_module():
    from quantail.experiments.reading import shipped

    for path in shipped().values():
        assert ":" not in "".join(tomllib.loads(path.read_text())["games"])
