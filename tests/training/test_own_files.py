"""Training changes and removes only files that it wrote itself."""

import errno
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

import quantail as q
from quantail import files
from quantail.errors import QuantailError
from quantail.files import hold, is_held
from quantail.runs.checkpoints import Checkpoints
from quantail.runs.folder import RunFolder
from quantail.runs.tables import TABLES
from tests.helpers.runs import (
    QUICK,
    Listening,
    flags,
    killed_at,
    prepare,
    quantail,
    quick,
    rows,
    same_learning,
)

CARTPOLE = QUICK["CartPole-v1"]


@pytest.fixture
def run(cartpoles, tmp_path):
    return shutil.copytree(cartpoles / "iqn-0", tmp_path / "run")


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


# Missing checkpoints


@pytest.mark.parametrize("kept", ["tables", "folder, tables", "replay", "results", "pointer"])
def test_a_run_whose_checkpoints_are_missing_is_refused_and_nothing_is_removed(run, kept):
    shutil.rmtree(run / "checkpoints")
    (run / ".saved").unlink()
    if kept != "replay":
        shutil.rmtree(run / "replay")
    if kept in ("folder, tables", "pointer"):
        (run / "checkpoints").mkdir()
    if kept == "pointer":
        (run / "checkpoints/last").write_text("000000200\n")
    if kept == "results":
        (run / "results").mkdir()
        (run / "results/one.json").write_text("{}")
    if "tables" not in kept:
        for path in run.glob("*.csv"):
            path.unlink()
    (run / "my_notes.csv").write_text("mine")
    before = contents(run)
    heard = Listening()
    with pytest.raises(QuantailError, match="no checkpoint to resume from, although its"):
        q.resume(run, callbacks=[heard])
    assert contents(run) == before
    assert not heard.warnings


def test_a_short_run_that_has_finished_is_not_taken_for_one_that_never_saved(tmp_path):
    """Its tables end before the first checkpoint would have been due."""
    run = tmp_path / "run"
    settings = quick("iqn") | {"checkpoint_every": 1000, "evaluation_every": 1000}
    q.train("CartPole-v1", out=run, steps=100, **settings)
    for folder in ("checkpoints", "replay"):
        shutil.rmtree(run / folder)
    before = contents(run)
    with pytest.raises(QuantailError, match="although it has saved before"):
        q.resume(run, steps=200)
    assert contents(run) == before


def test_tables_that_the_run_did_not_write_are_never_removed(run):
    for folder in ("checkpoints", "replay"):
        shutil.rmtree(run / folder)
    (run / ".saved").unlink()
    for path in run.glob("*.csv"):
        path.unlink()
    (run / "metrics.csv").write_text("day,weight\nmonday,80\n")
    with pytest.raises(QuantailError, match=r"metrics\.csv is damaged or is not a table"):
        q.resume(run)
    assert (run / "metrics.csv").read_text() == "day,weight\nmonday,80\n"


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ("os.mkdir", ".000000050.part"),
        ("os.rename", "/.state.json.part"),
        ("os.rename", ".000000050.part"),
    ],
)
def test_a_run_killed_in_its_first_save_restarts_exactly(event, name, cartpoles, tmp_path):
    run = tmp_path / "run"
    settings = flags(quick("iqn") | {"steps": 200, "seed": 0})
    killed_at(event, name, "train", "CartPole-v1", "--quiet", "--out", run, *settings)
    assert list((run / "replay").glob("*.safetensors"))
    assert not Checkpoints(run / "checkpoints").names()
    heard = Listening()
    q.resume(run, callbacks=[heard])
    assert [one for one in heard.warnings if "begins again at step 0" in one]
    assert same_learning(run, cartpoles / "iqn-0")


def test_without_a_checkpoint_only_resuming_from_last_restarts_the_run(tmp_path):
    prepare("CartPole-v1", out=tmp_path / "run", steps=60, **CARTPOLE).close()
    with pytest.raises(QuantailError, match="has not saved yet"):
        q.resume(tmp_path / "run", checkpoint="previous")


# Symbolic links


@pytest.mark.parametrize(
    "name",
    ["checkpoints", "replay", ".lock", *(f"{table}.csv" for table in TABLES)],
)
def test_a_symbolic_link_where_training_writes_is_refused(run, name, tmp_path):
    other = tmp_path / "else"
    if not (run / name).exists():
        (run / name).write_text("")
    shutil.move(run / name, other)
    (run / name).symlink_to(other)
    if other.is_file():
        other.write_text("precious")
    before = contents(tmp_path)
    with pytest.raises(QuantailError, match=f"{name} is a symbolic link"):
        q.resume(run, steps=260)
    assert contents(tmp_path) == before


def test_a_lock_that_is_a_link_does_not_change_its_target(run, tmp_path):
    (tmp_path / "precious").write_text("precious")
    (run / ".lock").unlink(missing_ok=True)
    (run / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(QuantailError, match="is a symbolic link"), RunFolder(run).held():
        pass
    assert (tmp_path / "precious").read_text() == "precious"


def test_the_folder_of_a_run_may_itself_be_a_link(run, tmp_path):
    (tmp_path / "link").symlink_to(run)
    q.resume(tmp_path / "link", steps=230)
    assert Checkpoints(run / "checkpoints").names()[-1] == "000000230"


# Runs that did not start


START = [
    ("open", "/.lock"),
    ("os.mkdir", "run/checkpoints"),
    ("open", "/.run.json.part"),
    ("os.rename", "/.run.json.part"),
]


@pytest.mark.parametrize(("event", "name"), START)
def test_a_run_killed_before_it_has_a_run_json_can_be_started_again(event, name, tmp_path):
    run, words = tmp_path / "run", flags(CARTPOLE | {"steps": 60})
    killed_at(event, name, "train", "CartPole-v1", "--quiet", "--out", run, *words)
    assert run.exists()
    assert not (run / "run.json").exists()
    refused = quantail("resume", run)
    assert refused.returncode == 2
    assert "Start it with quantail train" in refused.stderr
    q.train("CartPole-v1", out=run, steps=60, **CARTPOLE)
    assert not (run / ".run.json.part").exists()
    assert rows(run, "metrics")


@pytest.mark.parametrize(
    "name", ["notes.txt", "checkpoints/notes.txt", "replay/x", ".hidden", ".lock/x", "metrics.csv"]
)
def test_a_folder_with_any_file_of_the_user_is_refused(name, tmp_path):
    path = tmp_path / "run" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(QuantailError, match="exists already and is not a run"):
        q.train("CartPole-v1", out=tmp_path / "run", steps=60, **CARTPOLE)
    assert contents(tmp_path / "run") == {path.relative_to(tmp_path / "run"): b"mine"}


@pytest.mark.parametrize("error", [MemoryError, RuntimeError, KeyboardInterrupt, QuantailError])
@pytest.mark.parametrize("is_new", [True, False], ids=["new folder", "empty folder"])
def test_a_run_that_fails_to_start_cleans_its_folder(error, is_new, tmp_path, monkeypatch):
    run = tmp_path / "run"
    if not is_new:
        run.mkdir()
    with monkeypatch.context() as patch:

        def fail(*_):
            assert (run / "metrics.csv").exists()
            raise error("no room")

        patch.setattr("quantail.training.build.Evaluator", fail)
        with pytest.raises(error):
            q.train("CartPole-v1", out=run, steps=60, **CARTPOLE)
    assert run.exists() is not is_new
    assert is_new or not list(run.iterdir())
    q.train("CartPole-v1", out=run, steps=60, **CARTPOLE)


def test_a_run_that_fails_to_start_does_not_remove_other_files(tmp_path, monkeypatch):
    run = tmp_path / "run"

    def fail(*_):
        (run / "notes.txt").write_text("mine")
        (run / "checkpoints/notes.txt").write_text("mine")
        raise RuntimeError

    monkeypatch.setattr("quantail.training.build.Evaluator", fail)
    with pytest.raises(RuntimeError):
        q.train("CartPole-v1", out=run, steps=60, **CARTPOLE)
    assert sorted(path.name for path in run.rglob("*")) == ["checkpoints", "notes.txt", "notes.txt"]


def test_a_folder_in_which_another_process_starts_a_run_is_refused(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    with (
        RunFolder(run).held(),
        pytest.raises(QuantailError, match="is being trained by process"),
    ):
        q.train("CartPole-v1", out=run, steps=60, **CARTPOLE)
    assert [path.name for path in run.iterdir()] == [".lock"]


# The lock


def test_a_lock_is_released_even_if_a_forked_process_still_has_it_open(tmp_path):
    reading, writing = os.pipe()
    with RunFolder(tmp_path).held():
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)  # until the test is over
            os._exit(0)
    with RunFolder(tmp_path).held():
        pass
    os.close(writing)
    os.close(reading)
    os.waitpid(child, 0)


def test_a_lock_file_that_was_removed_while_waiting_for_it_is_created_again(tmp_path, monkeypatch):
    path, real, seen = tmp_path / ".lock", files.lock_descriptor, []

    def lock_descriptor(descriptor, **how):
        if not seen:
            seen.append(descriptor)
            path.unlink()  # by the process that held it until now
        return real(descriptor, **how)

    monkeypatch.setattr(files, "lock_descriptor", lock_descriptor)
    with hold(path, "busy"):
        assert int(path.read_text()) == os.getpid()
        with pytest.raises(QuantailError, match=f"busy by process {os.getpid()}"), hold(path, "busy"):
            pass


HOLD = """
import sys
from pathlib import Path
from quantail.files import hold
with hold(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_elsewhere(path):
    """Hold a lock in another process until the end, which kills that process."""
    words = [sys.executable, "-c", HOLD, path]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            process.kill()


def test_a_lock_ends_with_its_process_even_if_that_is_killed(tmp_path):
    path = tmp_path / ".lock"
    with held_elsewhere(path) as process:
        with pytest.raises(QuantailError, match=f"^busy by process {process.pid}.$"), hold(path, "busy"):
            pass
        assert is_held(path)
    assert not is_held(path)
    with hold(path, "busy"):
        pass


def test_asking_whether_a_lock_is_held_neither_takes_nor_changes_it(tmp_path):
    path = tmp_path / ".lock"
    assert not is_held(path)
    assert not path.exists()
    with held_elsewhere(path):
        before = path.read_bytes()
        assert is_held(path)
        assert path.read_bytes() == before
    assert not is_held(path)
    assert path.read_bytes() == before
    with hold(path, "busy"):
        pass


def test_a_lock_file_that_may_only_be_read_can_be_asked_for(tmp_path):
    path = tmp_path / ".lock"
    with held_elsewhere(path):
        path.chmod(0o444)
        assert is_held(path)
    assert not is_held(path)


def test_a_file_system_without_locks_is_named_in_one_sentence(tmp_path, monkeypatch):
    def lock_descriptor(descriptor, **how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files, "lock_descriptor", lock_descriptor)
    says = pytest.raises(QuantailError, match=r"\.lock cannot be locked: no locks available\.$")
    with says, hold(tmp_path / ".lock", "busy"):
        pass
