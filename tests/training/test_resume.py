"""A run that was killed with real signals and resumed equals an uninterrupted one bit for bit."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import quantail as q
from quantail.replay.store import FINAL
from quantail.runs.folder import RunFolder
from tests.helpers.runs import (
    QUICK,
    TINY,
    Listening,
    command,
    flags,
    kill_when,
    rows,
    same_learning,
)
from tests.helpers.sealed import editing


@pytest.mark.parametrize("env", QUICK)
def test_a_killed_and_resumed_run_equals_an_uninterrupted_one_bit_for_bit(env, tmp_path):
    settings = flags(QUICK[env] | {"steps": 300})
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert command("train", env, "--quiet", "--out", whole, *settings) == 0

    # Killed twice, each time between two checkpoints, after writing rows that must be removed again.
    status, _ = kill_when(
        lambda: len(rows(broken, "metrics")) >= 7, "train", env, "--out", broken, *settings
    )
    assert status == -signal.SIGKILL
    assert not (broken / "checkpoints" / "000000300").exists()
    status, _ = kill_when(lambda: len(rows(broken, "metrics")) >= 12, "resume", broken)
    assert status == -signal.SIGKILL
    assert command("resume", broken, "--quiet") == 0
    assert same_learning(whole, broken)


def test_runs_with_the_same_seed_are_identical_and_those_with_another_seed_differ(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        q.train("CartPole-v1", out=tmp_path / name, steps=200, seed=seed, **QUICK["CartPole-v1"])
    assert same_learning(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a/metrics.csv").read_bytes() != (tmp_path / "c/metrics.csv").read_bytes()


def test_a_short_run_resumed_with_more_steps_equals_a_long_one(tmp_path):
    settings = QUICK["CartPole-v1"]
    q.train("CartPole-v1", out=tmp_path / "long", steps=400, **settings)
    q.train("CartPole-v1", out=tmp_path / "short", steps=200, **settings)
    q.resume(tmp_path / "short", steps=400)
    assert same_learning(tmp_path / "long", tmp_path / "short")
    assert json.loads((tmp_path / "short/run.json").read_text())["settings"]["steps"] == 400


LONG = {"steps": 1500, "checkpoint_every": 100_000, "evaluation_every": 10_000}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "uninterrupted"
    q.train("CartPole-v1", out=out, **QUICK["CartPole-v1"] | LONG)
    return out


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_after_ctrl_c_or_sigterm_the_run_is_saved_and_prints_how_to_resume(
    how, status, uninterrupted, tmp_path
):
    env, run, settings = "CartPole-v1", tmp_path / "run", flags(QUICK["CartPole-v1"] | LONG)
    code, said = kill_when(
        lambda: len(rows(run, "metrics")) >= 6, "train", env, "--out", run, *settings, how=how
    )
    assert code == status
    assert f"quantail resume {run}" in said
    assert "Traceback" not in said
    steps = int((run / "checkpoints/last").read_text())
    assert 100 < steps < 1500
    assert command("resume", run, "--quiet") == 0
    assert same_learning(run, uninterrupted)


def test_a_run_killed_before_its_first_save_restarts(tmp_path, capsys):
    env, run, whole = "CartPole-v1", tmp_path / "run", tmp_path / "whole"
    settings = flags(QUICK[env] | {"steps": 300, "checkpoint_every": 300, "evaluation_every": 300})
    kill_when(lambda: len(rows(run, "metrics")) >= 3, "train", env, "--out", run, *settings)
    assert not list((run / "checkpoints").iterdir())
    with pytest.raises(q.QuantailError, match="has not saved yet"):
        q.load(run)
    (run / "my_notes.csv").write_text("mine")
    assert command("resume", run, "--quiet") == 0
    assert "begins again at step 0" in capsys.readouterr().err
    assert (run / "my_notes.csv").read_text() == "mine"
    assert command("train", env, "--quiet", "--out", whole, *settings) == 0
    assert same_learning(run, whole)


def test_evaluation_does_not_change_what_is_learned(tmp_path):
    settings = QUICK["CartPole-v1"]
    q.train("CartPole-v1", out=tmp_path / "often", steps=200, **settings | {"evaluation_every": 10})
    q.train("CartPole-v1", out=tmp_path / "never", steps=200, **settings | {"evaluation_every": 200})
    for file in ("agent", "learner", "collector"):
        path = f"checkpoints/000000200/{file}.safetensors"
        assert (tmp_path / "often" / path).read_bytes() == (tmp_path / "never" / path).read_bytes()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "finished"
    q.train("CartPole-v1", out=run, steps=200, **QUICK["CartPole-v1"])
    return run


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def test_only_the_last_previous_and_best_checkpoints_are_kept(run):
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    best = (run / "checkpoints/best").read_text().strip()
    last = (run / "checkpoints/last").read_text().strip()
    assert last == "000000200"
    assert set(names) == {"best", "last", "000000150", "000000200", best}


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
@pytest.mark.parametrize("file", ["agent.safetensors", "learner.safetensors", "state.json", "replay"])
def test_a_damaged_checkpoint_is_refused_and_the_previous_one_can_be_resumed(run, file, damage, capsys):
    last = run / "checkpoints/000000200"
    if file == "replay":
        kept = {
            s["file"]
            for s in json.loads((run / "checkpoints/000000150/state.json").read_text())["replay"][
                "segments"
            ]
        }
        path = next(p for p in (run / "replay").iterdir() if p.name not in kept)
    else:
        path = last / file
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif file == "state.json":
        path.write_bytes(content.replace(b'"schema": 1', b'"schema": "x"'))
    else:
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert command("resume", run, "--steps", 250) == 2
    assert str(path) in capsys.readouterr().err
    q.resume(run, steps=250, checkpoint="previous")
    assert (run / "checkpoints/last").read_text().strip() == "000000250"


def test_a_failed_resume_changes_nothing(run):
    before = {path: path.read_bytes() for path in run.glob("*.csv")}
    segment = max((run / "replay").iterdir())  # the newest
    content = segment.read_bytes()
    segment.unlink()
    with pytest.raises(q.QuantailError, match="missing"):
        q.resume(run, steps=250)
    with pytest.raises(q.QuantailError, match="resume takes last or previous"):
        q.resume(run, steps=250, checkpoint="best")
    assert {path: path.read_bytes() for path in run.glob("*.csv")} == before
    segment.write_bytes(content)
    q.resume(run, steps=250)
    assert len(rows(run, "metrics")) == 13


def test_a_table_that_lost_rows_causes_a_warning_and_is_not_padded(run):
    (run / "metrics.csv").unlink()
    heard = Listening()
    q.resume(run, steps=250, callbacks=[heard])
    assert "lost rows" in heard.warnings[0]
    assert b"\0" not in (run / "metrics.csv").read_bytes()


def test_a_run_killed_at_any_moment_of_a_save_can_be_resumed(run):
    checkpoints = run / "checkpoints"
    (checkpoints / "last").unlink()  # before `last` was updated
    assert q.load(run, "last")
    (checkpoints / "000000200").rename(checkpoints / ".000000200.old")  # between the two renames
    (checkpoints / ".000000200.part").mkdir()
    q.resume(run, steps=250)
    assert (checkpoints / "last").read_text().strip() == "000000250"
    assert not list(checkpoints.glob(".*"))


def test_resuming_from_the_previous_checkpoint_replaces_the_damaged_one(run):
    (run / "checkpoints/000000200/state.json").write_text("{")
    q.resume(run, steps=230, checkpoint="previous")
    kept = {path.name for path in (run / "checkpoints").iterdir() if path.is_dir()}
    assert "000000200" not in kept or json.loads((run / "checkpoints/000000200/state.json").read_text())
    assert q.load(run, "previous")


def test_a_run_stopped_during_its_last_evaluation_can_be_finished(run):
    with editing(run / "checkpoints/000000200/state.json") as state:
        state["due"]["evaluation"] = 100
        state["tables"]["evaluations"] -= 1
    before = rows(run, "evaluations")
    q.resume(run)
    assert rows(run, "evaluations") == before


def test_two_processes_cannot_train_in_one_folder(run):
    with RunFolder(run).held(), pytest.raises(q.QuantailError, match="is being trained by process"):
        q.resume(run, steps=250)


def test_resuming_with_another_environment_is_refused(run):
    with pytest.raises(q.QuantailError, match="Acrobot-v1 is not the environment of"):
        q.resume(run, steps=250, env="Acrobot-v1")


def test_a_run_of_a_newer_version_is_refused(run, capsys):
    with editing(run / "run.json") as content:
        content["schema"] = 99
    for name in ("resume", "eval"):
        assert command(name, run) == 2
        assert "newer Quantail" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (lambda run: shutil.rmtree(run), "there is no run at"),
        (lambda run: (run / "run.json").unlink(), "is not a run"),
        (lambda run: (run / "run.json").write_text("{"), "cannot be read"),
        (lambda run: (run / "run.json").write_text('{"schema": 2}'), "is damaged"),
        (lambda run: None, "has completed its 200 steps"),
    ],
)
def test_the_error_for_a_folder_that_cannot_be_resumed_gives_the_reason(run, prepare, says, capsys):
    prepare(run)
    assert command("resume", run) == 2
    assert says in capsys.readouterr().err


def test_a_full_disk_is_reported_and_the_last_checkpoint_stays_intact(tmp_path):
    """A limit on the size of files makes a real write fail."""
    run = tmp_path / "run"
    settings = flags(QUICK["CartPole-v1"] | {"steps": 2000, "log_every": 1})
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000));"
    code = f"{limit} import sys; from quantail.cli.main import main; main(sys.argv[1:])"
    words = ["train", "CartPole-v1", "--out", str(run), *settings]
    result = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=200, check=False
    )
    assert result.returncode == 1
    assert "file too large" in result.stderr
    assert "Traceback" not in result.stderr
    saved = int((run / "checkpoints/last").read_text())
    assert saved > 100
    q.resume(run, steps=saved + 50)
    assert int(rows(run, "metrics")[-1].split(",")[0]) == saved + 50


class Unseeded(gym.Env):
    """An environment that ignores its seed."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)
    generator = np.random.default_rng()

    def reset(self, *, seed=None, options=None):
        return self.generator.random(2, dtype=np.float32), {}

    def step(self, action):
        return (
            self.generator.random(2, dtype=np.float32),
            1.0,
            bool(self.generator.random() < 0.01),
            False,
            {},
        )


def test_an_environment_that_cannot_be_replayed_causes_a_warning_and_a_truncated_episode(tmp_path):
    settings = TINY | {"mlp_sizes": [8], "steps": 100, "max_episode_steps": 1000}
    q.train(Unseeded, out=tmp_path / "run", **settings)
    with pytest.raises(q.QuantailError, match="pass it again as env="):
        q.resume(tmp_path / "run", steps=150)
    heard = Listening()
    q.resume(tmp_path / "run", steps=150, env=Unseeded, callbacks=[heard])
    assert len(heard.warnings) == 1
    assert "not an exact" in heard.warnings[0]
    stored = np.concatenate(
        [read_flags(path) for path in sorted((tmp_path / "run/replay").glob("*.safetensors"))]
    )
    assert (stored & FINAL).any()


def read_flags(path: Path):
    from safetensors.numpy import load_file

    return load_file(path)["flags"]
