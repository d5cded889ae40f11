"""Saving removes only old files with names of its own, and continues if it cannot remove them."""

import errno
import os
import shutil

import pytest

import quantail as q
from quantail.replay import ReplayStore
from quantail.replay.journal import ReplayJournal
from quantail.runs.checkpoints import Checkpoints
from tests.helpers.replay import PLAIN
from tests.helpers.runs import Listening, command, killed_at, quick, same_learning


@pytest.fixture
def run(cartpoles, tmp_path):
    return shutil.copytree(cartpoles / "iqn-0", tmp_path / "run")


def test_saving_removes_no_folder_or_file_of_another_name(run):
    checkpoints, replay = run / "checkpoints", run / "replay"
    kept = [
        checkpoints / name
        for name in ("keep-this", "1abc", "2-copy", "0000000010", ".mine.part", ".a.old")
    ]
    for path in kept:
        shutil.copytree(checkpoints / "000000200", path)
    files = [replay / "mine.safetensors", replay / "1-2.safetensors", replay / ".mine.safetensors.part"]
    for path in files:
        path.write_text("mine")
    strays = [replay / ".000000000000-000000000050.safetensors.part", checkpoints / ".000000050.part/x"]
    strays[1].parent.mkdir()
    for path in strays:
        path.write_text("half")
    q.resume(run, steps=260)
    assert all((path / "state.json").exists() for path in kept)
    assert all(path.read_text() == "mine" for path in files)
    assert not any(path.exists() for path in strays)
    assert set(Checkpoints(checkpoints).names()) >= {"000000250", "000000260"}


def test_a_link_in_place_of_an_old_checkpoint_or_segment_is_not_removed(run, tmp_path):
    (tmp_path / "else").mkdir()
    (tmp_path / "else/file").write_text("mine")
    link = run / "checkpoints/000000010"
    link.symlink_to(tmp_path / "else")
    segment = run / "replay/000000000000-000000000001.safetensors"
    segment.symlink_to(tmp_path / "else/file")
    heard = Listening()
    q.resume(run, steps=260, callbacks=[heard])
    assert link.is_symlink()
    assert segment.is_symlink()
    assert (tmp_path / "else/file").read_text() == "mine"
    assert not heard.warnings


def test_folders_that_are_not_checkpoints_are_ignored(run):
    for name in ("1abc", "2-copy", "000000900-copy", "0000000900", "²²²²²²²²²"):
        (run / "checkpoints" / name).mkdir()
    (run / "checkpoints/000000900").write_text("a file")
    found = Checkpoints(run / "checkpoints")
    assert found.names()[-1] == "000000200"
    assert found.name_of("previous") == "000000150"
    assert q.load(run, "last").checkpoint == 200


def test_checkpoints_are_ordered_by_their_steps(tmp_path):
    for name in ("1000000000", "999999999", "000000005"):
        (tmp_path / name).mkdir()
    found = Checkpoints(tmp_path)
    assert found.names() == ["000000005", "999999999", "1000000000"]
    assert found.name_of("previous") == "999999999"


@pytest.mark.parametrize("which", ["²", "5" * 5000, "-1", "1abc", "٣"])
def test_the_error_for_an_invalid_checkpoint_is_short(run, which, capsys):
    assert command("eval", run, f"--checkpoint={which}") == 2
    said = capsys.readouterr().err
    assert "does not exist: use last, best, previous" in said
    assert len(said) < 300
    assert q.load(run, "00000000000200").checkpoint == 200


def test_only_an_older_checkpoint_is_suggested(run, capsys):
    (run / "checkpoints/000000150/agent.safetensors").write_bytes(b"x")
    assert command("eval", run, "--checkpoint", 150) == 2
    said = capsys.readouterr().err
    assert "missing, damaged or truncated." in said
    assert "200" not in said


def test_for_resuming_only_an_intact_older_checkpoint_is_suggested(run, capsys):
    (run / "checkpoints/000000200/agent.safetensors").write_bytes(b"x")
    assert command("resume", run, "--steps", 260) == 2
    assert "use --checkpoint 150" in capsys.readouterr().err
    (run / "checkpoints/000000150/agent.safetensors").write_bytes(b"x")
    assert command("resume", run, "--steps", 260) == 2
    assert "An older" not in capsys.readouterr().err  # an older best checkpoint has no replay buffer


# Files that cannot be removed


def test_an_old_file_that_cannot_be_removed_causes_one_warning_and_is_tried_again(run, monkeypatch):
    stuck = {"rmdir": 0, "unlink": 0}

    def busy(name, real):
        def remove(path, *args, **options):
            shown = os.fspath(path)
            if shown.endswith((".000000150.part", "000000000050.safetensors")) and stuck[name] < 2:
                stuck[name] += 1
                raise OSError(errno.EBUSY, "Device or resource busy", shown)
            return real(path, *args, **options)

        return remove

    for name in stuck:
        monkeypatch.setattr(os, name, busy(name, getattr(os, name)))
    heard = Listening()
    q.resume(run, steps=450, callbacks=[heard])
    assert stuck == {"rmdir": 2, "unlink": 2}
    warned = [one for one in heard.warnings if "could not be removed (device or resource busy)" in one]
    assert len(warned) == 2
    assert not list((run / "checkpoints").glob(".*"))
    assert not (run / "replay/000000000000-000000000050.safetensors").exists()


def test_a_checkpoint_whose_removal_was_interrupted_is_not_a_checkpoint_any_more(run):
    for event in ("os.remove", "os.rmdir"):
        again = shutil.copytree(run, run.with_name(event))
        # The audit event has only the file name, because files are removed relative to their folder.
        name = "agent.safetensors" if event == "os.remove" else ".000000150.part"
        killed_at(event, name, "resume", again, "--quiet", "--steps", 260)
        assert "000000150" not in Checkpoints(again / "checkpoints").names()
        q.resume(again, steps=260)
        assert not list((again / "checkpoints").glob(".*"))


def test_a_journal_without_a_folder_has_nothing_to_remove(tmp_path):
    assert ReplayJournal(tmp_path / "replay", ReplayStore(PLAIN, 1, 10)).prune(set()) == {}


# Every checkpoint


def kept_run(path, steps=300, **settings):
    chosen = quick("iqn") | {"keep_checkpoints": "all", **settings}
    q.train("CartPole-v1", out=path, steps=steps, **chosen)
    return path


def test_all_checkpoints_stay_with_their_weights_and_only_the_last_two_with_more(tmp_path):
    run = kept_run(tmp_path / "run")
    found = Checkpoints(run / "checkpoints")
    assert [int(name) for name in found.names()] == [50, 100, 150, 200, 250, 300]
    for name in found.names():
        files = {path.name for path in (run / "checkpoints" / name).iterdir()}
        whole = int(name) >= 250
        assert ("learner.safetensors" in files) == whole, name
        assert whole or files == {"agent.safetensors", "state.json"}
        assert q.load(run, str(int(name))).checkpoint == int(name)
    assert found.read("250").is_resumable
    assert not found.read("200").is_resumable


def test_the_kept_weights_are_those_of_the_checkpoint_when_it_was_saved(tmp_path):
    long = kept_run(tmp_path / "long")
    short = kept_run(tmp_path / "short", steps=100)
    name = "checkpoints/000000100/agent.safetensors"
    assert (long / name).read_bytes() == (short / name).read_bytes()


def test_keeping_all_changes_neither_learning_nor_resuming(tmp_path):
    usual = tmp_path / "usual"
    q.train("CartPole-v1", out=usual, steps=300, **quick("iqn"))
    resumed = kept_run(tmp_path / "resumed", steps=200)
    q.resume(resumed, steps=300)
    assert same_learning(usual, resumed)
    assert {"000000050", "000000200", "000000300"} <= set(Checkpoints(resumed / "checkpoints").names())


def test_training_cannot_continue_from_weights_alone(tmp_path, capsys):
    run = kept_run(tmp_path / "run")
    assert command("resume", run, "--steps", 400, "--checkpoint", 100) == 2
    assert "holds the weights of the agent alone" in capsys.readouterr().err
    q.resume(run, steps=400, checkpoint="previous")
    assert len(Checkpoints(run / "checkpoints").names()) == 8


def test_checkpoints_of_a_continuation_that_was_given_up_are_removed(tmp_path):
    run = kept_run(tmp_path / "run")
    shutil.copytree(run / "checkpoints/000000300", run / "checkpoints/000000333")
    q.resume(run, steps=320, checkpoint="previous")
    assert Checkpoints(run / "checkpoints").names()[-1] == "000000320"


def test_a_reduction_that_was_interrupted_leaves_a_checkpoint_that_loads(tmp_path):
    run = kept_run(tmp_path / "run", steps=150)
    for number, name in enumerate(("000000100", ".000000100.part")):
        again = shutil.copytree(run, run.with_name(f"again-{number}"))
        killed_at("os.rename", name, "resume", again, "--quiet", "--steps", 260)
        q.resume(again, steps=260)
        names = Checkpoints(again / "checkpoints").names()
        assert names == ["000000050", "000000100", "000000150", "000000200", "000000250", "000000260"]
        assert q.load(again, "100").checkpoint == 100


def test_a_damaged_checkpoint_is_kept_as_it_is(tmp_path):
    run = kept_run(tmp_path / "run", steps=100)
    (run / "checkpoints/000000050/learner.safetensors").write_bytes(b"x")
    q.resume(run, steps=200)
    assert (run / "checkpoints/000000050/learner.safetensors").read_bytes() == b"x"
