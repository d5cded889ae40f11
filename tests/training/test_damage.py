"""A run with damaged files is refused with one error message, or continues exactly."""

import json
import os
import shutil
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import quantail as q
from quantail.errors import QuantailError
from quantail.files import SEAL, checksum
from quantail.runs.folder import RunFolder
from quantail.runs.history import read_history
from tests.helpers.runs import QUICK, Listening, command, prepare, quick, rows, same_learning
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
    [('"state": 1', '"state": 2'), ('"timing": ', '"timing": 1'), ('"log": 200', '"log": 201')],
)
def test_a_checkpoint_with_one_changed_digit_in_its_state_is_refused(run, old, new, capsys):
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
def test_a_run_json_with_one_changed_letter_is_refused(run, old, new):
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


def test_extending_a_run_updates_its_checksum(run):
    RunFolder(run).record(steps=1234, threads=2, kernels="torch")
    info = RunFolder(run).read()
    assert (info.config.run.steps, info.threads) == (1234, 2)


def test_the_error_for_settings_of_another_version_names_them(run):
    with editing(run / "run.json") as content:
        content["settings"]["learning_rade"] = 0.1
    with pytest.raises(QuantailError, match=r"does not know \(learning_rade\)"):
        q.resume(run, steps=240)
    with editing(run / "run.json") as content:
        del content["settings"]["learning_rade"], content["settings"]["kappa"]
    with pytest.raises(QuantailError, match=r"lacks settings .* \(kappa\)"):
        q.resume(run, steps=240)


def test_the_error_for_a_setting_of_the_wrong_type_names_the_file(run):
    with editing(run / "run.json") as content:
        content["settings"]["kappa"] = [1]
    with pytest.raises(QuantailError, match=r"run\.json is damaged: kappa takes"):
        q.load(run)


# Wrong values with a correct checksum


def put(*keys, value):
    def change(state):
        for key in keys[:-1]:
            state = state[key]
        state[keys[-1]] = value

    return change


WRONG_VALUES = {
    "steps": put("counters", "steps", value="many"),
    "generators": put("generators", "replay", value="x"),
    "a missing generator": lambda state: state["generators"].pop("replay"),
    "an unknown generator": put("generators", "other", value={}),
    "recent": put("counters", "recent", value=[["a", 1]]),
    "recent as a number": put("counters", "recent", value=3),
    "done_at": put("due", value={"log": 1}),
    "done_at evaluation": put("due", "evaluation", value="x"),
    "scores": put("scores", value={"best": 1}),
    "score": put("scores", "means", value={"random": "x"}),
    "seconds": put("clock", value={}),
    "tables": put("tables", "metrics", value=None),
    "playing": put("collector", "episodes", value=[]),
    "action": put("collector", "episodes", 0, "actions", value=["x"]),
    "unknown action": put("collector", "episodes", 0, "actions", value=[7]),
    "replay": put("replay", "segments", value=[{}]),
    "end": put("replay", "segments", -1, "end", value=["x"]),
    "an end that does not match": put("replay", "segments", -1, "end", value=[10**6]),
    "num_envs": put("replay", "segments", -1, "begin", value=[0, 0]),
    "a component that is not an object": put("counters", value=3),
    "a missing component": lambda state: state.pop("due"),
    "an unknown component": put("other", value={}),
    "an unknown entry": put("counters", "more", value=1),
    "a missing entry": lambda state: state["counters"].pop("episodes"),
    "a count below zero": put("counters", "episodes", value=-1),
    "a truth value as a count": put("counters", "episodes", value=True),
    "checksums": put("checksums", value=[1]),
}


@pytest.mark.parametrize("change", WRONG_VALUES.values(), ids=WRONG_VALUES)
def test_the_error_for_a_wrong_value_names_the_checkpoint_and_an_older_one(run, change, capsys):
    with editing(state_of(run)) as state:
        change(state)
    before = {path: path.read_bytes() for path in run.glob("*.csv")}
    assert command("resume", run, "--steps", 240) == 2
    said = capsys.readouterr().err
    assert said.count("\n") < 15  # the description of the run, then the error message
    last = said.strip().splitlines()[-1]
    assert "checkpoints/000000200" in last
    assert "An older checkpoint exists: use --checkpoint 150." in last
    assert {path: path.read_bytes() for path in run.glob("*.csv")} == before
    q.resume(run, steps=240, checkpoint="150")
    assert (run / "checkpoints/last").read_text() == "000000240\n"


@pytest.mark.parametrize("file", ["agent", "learner", "collector"])
@pytest.mark.parametrize("how", ["gone", "shape"])
def test_the_error_for_wrong_tensors_names_an_older_checkpoint(run, file, how):
    path = run / f"checkpoints/000000200/{file}.safetensors"
    arrays = load_file(path)
    name = {
        "agent": "torso.layers.1.weight",
        "learner": "target.torso.layers.1.weight",
        "collector": "observations",
    }[file]
    kept = arrays.pop(name)
    save_file(arrays if how == "gone" else arrays | {name: np.zeros((3, 1), kept.dtype)}, path)
    with editing(state_of(run)) as state:
        state["checksums"][path.name] = checksum(path)
    with pytest.raises(QuantailError, match=r"000000200 .*use --checkpoint 150"):
        q.resume(run, steps=240)


@pytest.fixture(scope="module")
def prioritized(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prioritized") / "run"
    q.train("CartPole-v1", out=folder, steps=200, **quick("prioritized-dqn"))
    return folder


SAMPLER_DAMAGE = {
    "the file is gone": (None, r"sampler\.safetensors is missing, damaged or truncated"),
    "the checkpoint was saved without it": (
        None,
        "cannot be restored: its sampler is damaged: it lacks known",
    ),
    "an array is gone": (lambda arrays: arrays.pop("known"), "cannot be restored: .* lacks known"),
    "a shape": (
        lambda arrays: arrays.update(leaves=np.ones(1)),
        r"cannot be restored: .* leaves is float64 of shape \(1,\)",
    ),
    "a value": (
        lambda arrays: arrays.update(largest=np.array([np.nan])),
        "cannot be restored: .* largest cannot be nan",
    ),
}


@pytest.mark.parametrize("how", SAMPLER_DAMAGE)
def test_the_error_for_a_damaged_sampler_names_an_older_checkpoint(prioritized, tmp_path, how):
    run = shutil.copytree(prioritized, tmp_path / "run")
    change, says = SAMPLER_DAMAGE[how]
    path = run / "checkpoints/000000200/sampler.safetensors"
    arrays = load_file(path)
    path.unlink()
    if change:
        change(arrays)
        save_file(arrays, path)
    if how != "the file is gone":
        with editing(state_of(run)) as state:
            del state["checksums"][path.name]
            if change:
                state["checksums"][path.name] = checksum(path)
    with pytest.raises(QuantailError, match=rf"000000200.*{says}.* use --checkpoint 150"):
        q.resume(run, steps=240)
    q.resume(run, steps=240, checkpoint="150")


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        TypeError("x"),
        AttributeError("x"),
        IndexError("x"),
        RuntimeError("x"),
        OverflowError("x"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_any_error_while_restoring_becomes_an_error_message(run, error, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr("quantail.seeds.Generators.load_state_dict", fail)
    with pytest.raises(QuantailError, match=r"000000200 cannot be restored: .+ use --checkpoint 150"):
        q.resume(run, steps=240)


def test_the_error_for_a_missing_segment_names_an_older_checkpoint(run):
    old, new = (
        {part["file"] for part in json.loads(state_of(run, name).read_text())["replay"]["segments"]}
        for name in ("000000150", "000000200")
    )
    (run / "replay" / (new - old).pop()).unlink()
    with pytest.raises(QuantailError, match=r"missing.* use --checkpoint 150"):
        q.resume(run, steps=240)


# Tables


@pytest.mark.parametrize("header", [b"\xff\xfe", b"steps,frames\n", b"1,2,3\n", b"stebs"])
def test_a_damaged_header_of_a_table_is_reported_before_anything_is_changed(run, header, capsys):
    table = run / "metrics.csv"
    content = table.read_bytes()
    damaged = header + content.split(b"\n", 1)[1]
    table.write_bytes(damaged)
    assert command("resume", run, "--steps", 240) == 2
    assert "metrics.csv is damaged: its first row is not steps,frames," in capsys.readouterr().err
    assert table.read_bytes() == damaged
    table.write_bytes(content)
    q.resume(run, steps=240)


@pytest.mark.parametrize("left", [-20, -1, 5, 0])
@pytest.mark.parametrize("name", ["metrics", "evaluations", "episodes"])
def test_a_table_that_is_too_short_continues_after_its_last_complete_row(run, name, left):
    table = run / f"{name}.csv"
    content = table.read_bytes()
    table.write_bytes(content[:left])
    heard = Listening()
    q.resume(run, steps=300, callbacks=[heard])
    assert [one for one in heard.warnings if f"{name}.csv has lost rows" in one]
    header, *lines = table.read_text().splitlines()
    assert header == content.decode().split("\n")[0]
    assert all(line.count(",") == header.count(",") for line in lines)
    complete = content[:left].decode().split("\n")[1:-1]
    assert lines[: len(complete)] == complete
    assert len(lines) > len(complete)
    read_history(run)


def test_a_table_that_was_edited_is_cut_between_rows_and_not_within_one(run):
    table = run / "metrics.csv"
    header, first, rest = table.read_text().split("\n", 2)
    table.write_text(f"{header}\n{first}00\n{rest}")  # an edit that adds two bytes
    heard = Listening()
    q.resume(run, steps=240, callbacks=[heard])
    assert not any("lost rows" in one for one in heard.warnings)
    assert table.read_text().endswith("\n")
    assert [line.split(",")[0] for line in rows(run, "metrics")][-2:] == ["220", "240"]


def test_the_tables_are_flushed_to_disk_before_the_state_that_refers_to_them(run, monkeypatch):
    synced = []
    real = os.fsync

    def fsync(descriptor):
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    q.resume(run, steps=250)
    before = synced[: synced.index(".state.json.part")]
    assert {"metrics.csv", "timing.csv", "episodes.csv", "evaluations.csv"} <= set(before)


# Weights that are not finite


def test_weights_that_are_not_finite_are_never_saved(tmp_path):
    settings = QUICK["CartPole-v1"] | {
        "learning_starts": 100,
        "train_frequency": 100,
        "learning_rate": 1e38,
    }
    with pytest.raises(QuantailError, match="weights were not finite by update 1: learning diverged"):
        q.train("CartPole-v1", out=tmp_path / "run", steps=100, **settings)
    assert (tmp_path / "run/checkpoints/last").read_text() == "000000050\n"
    agent = q.load(tmp_path / "run")
    assert agent.checkpoint == 50


@pytest.mark.parametrize("network", ["online", "target"])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_every_network_is_checked_before_a_save(tmp_path, network, value):
    trainer = prepare("CartPole-v1", out=tmp_path / "run", steps=100, **QUICK["CartPole-v1"])
    trainer.start()
    trainer.save()
    parameters = list(getattr(trainer.learner, network).parameters())
    with torch.no_grad():
        parameters[-1].view(-1)[-1] = value
    with pytest.raises(QuantailError, match="weights were not finite"):
        trainer.save()
    trainer.close()


def test_an_agent_whose_weights_are_not_finite_is_refused(run):
    path = run / "checkpoints/000000200/agent.safetensors"
    arrays = load_file(path)
    arrays["torso.layers.1.weight"][0, 0] = np.nan
    save_file(arrays, path)
    with editing(state_of(run)) as state:
        state["checksums"][path.name] = checksum(path)
    with pytest.raises(QuantailError, match=r"weights that are not finite.* use --checkpoint 150"):
        q.load(run, "last")
    with pytest.raises(QuantailError, match=r"weights were not finite.* use --checkpoint 150"):
        q.resume(run, steps=240)


# Environments that carry state over from one episode to the next


def normalized():
    return gym.wrappers.NormalizeReward(gym.make("CartPole-v1"))


def test_rewards_that_cannot_be_replayed_cause_a_warning(tmp_path):
    settings = QUICK["CartPole-v1"] | {"checkpoint_every": 100}
    q.train(normalized, out=tmp_path / "run", steps=100, **settings)
    assert json.loads(state_of(tmp_path / "run", "000000100").read_text())["collector"]["episodes"][0][
        "actions"
    ]
    heard = Listening()
    q.resume(tmp_path / "run", steps=150, env=normalized, callbacks=[heard])
    assert [one for one in heard.warnings if "rewards" in one and "not an exact" in one]


def test_rewards_that_can_be_replayed_cause_no_warning(run, cartpoles):
    heard = Listening()
    q.resume(run, steps=240, callbacks=[heard])
    assert not [one for one in heard.warnings if "not an exact" in one]
    whole = shutil.copytree(cartpoles / "iqn-0", run.with_name("whole"))
    q.resume(whole, steps=240)
    assert same_learning(run, whole)
