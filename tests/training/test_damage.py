"""A run whose files were damaged is refused in one sentence, or goes on exactly."""

import json
import shutil

import pytest

import quantail as q
from quantail.errors import QuantailError
from quantail.files import SEAL
from quantail.training.history import read_history
from quantail.training.run_folder import RunFolder
from tests.helpers.runs import command
from tests.helpers.sealed import editing


@pytest.fixture
def run(cartpoles, tmp_path):
    return shutil.copytree(cartpoles / "iqn-0", tmp_path / "run")


def state_of(run, name="000000200"):
    return run / "checkpoints" / name / "state.json"


def replace(path, old, new):
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))


# Checksums


@pytest.mark.parametrize(
    ("old", "new"),
    [('"state": 1', '"state": 2'), ('"metrics": ', '"metrics": 1'), ('"log": 200', '"log": 201')],
)
def test_one_changed_digit_of_a_checkpoints_state_is_refused(run, old, new, capsys):
    replace(state_of(run), old, new)
    before = {path: path.read_bytes() for path in run.glob("*.csv")}
    assert command("resume", run, "--steps", 240) == 2
    said = capsys.readouterr().err
    assert "state.json is damaged" in said
    assert "--checkpoint 150" in said
    assert {path: path.read_bytes() for path in run.glob("*.csv")} == before
    with pytest.raises(QuantailError, match="does not match its checksum"):
        q.load(run, "last")
    with pytest.raises(QuantailError, match="does not match its checksum"):
        read_history(run)


@pytest.mark.parametrize(
    ("old", "new"),
    [('"learning_rate"', '"learning_rade"'), ('"seed": 0', '"seed": 1'), ('"CartPole-', '"CartPole_')],
)
def test_one_changed_letter_of_run_json_is_refused(run, old, new):
    replace(run / "run.json", old, new)
    for use in (q.load, q.resume, read_history):
        with pytest.raises(QuantailError, match=r"run\.json is damaged: .* checksum"):
            use(run)


def test_a_file_without_its_checksum_is_refused(run):
    for path in (state_of(run), run / "run.json"):
        content = json.loads(path.read_text())
        assert len(content.pop(SEAL)) == 64
        path.write_text(json.dumps(content))
        with pytest.raises(QuantailError, match=f"{path.name} is damaged: .* checksum"):
            q.load(run, "last")


def test_the_layout_of_a_file_may_change_but_not_its_content(run):
    for path in (run / "run.json", state_of(run)):
        path.write_text(json.dumps(json.loads(path.read_text()), indent=7, sort_keys=True))
    assert q.load(run, "last").checkpoint == 200


def test_a_run_made_longer_keeps_a_checksum_that_is_right(run):
    RunFolder(run).extend(1234)
    assert RunFolder(run).read().settings.steps == 1234


def test_settings_of_another_version_are_refused_and_named(run):
    with editing(run / "run.json") as content:
        content["settings"]["learning_rade"] = 0.1
    with pytest.raises(QuantailError, match=r"does not know \(learning_rade\)"):
        q.resume(run, steps=240)
    with editing(run / "run.json") as content:
        del content["settings"]["learning_rade"], content["settings"]["kappa"]
    with pytest.raises(QuantailError, match=r"lacks settings .* \(kappa\)"):
        q.resume(run, steps=240)


def test_a_setting_of_the_wrong_kind_names_the_file(run):
    with editing(run / "run.json") as content:
        content["settings"]["kappa"] = [1]
    with pytest.raises(QuantailError, match=r"run\.json is damaged: kappa takes"):
        q.load(run)
