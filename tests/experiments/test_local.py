import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quantail.cluster import cores
from quantail.errors import QuantailError
from quantail.experiments import changed, read_results, read_study, run_study
from quantail.experiments.engines import Event
from quantail.experiments.engines.local import LocalEngine
from quantail.experiments.folder import StudyFolder
from quantail.experiments.job import run_job
from quantail.experiments.runner import View
from tests.helpers.runs import kill_when, same_learning
from tests.helpers.studies import study_file


class EventLog(View):
    """Record all events in order."""

    def __init__(self):
        self.events: list[Event] = []

    def on_event(self, event):
        self.events.append(event)


def checkpoints(study):
    return list(Path(study).glob("runs/*/checkpoints/0*"))


def test_runs_of_a_study_are_ordinary_runs_with_one_thread_in_parallel(unbroken):
    info = json.loads((unbroken / "runs" / "cartpole-kappa-0.5-s0" / "run.json").read_text())
    assert info["settings"]["kappa"] == 0.5
    assert info["threads"] == 1
    assert LocalEngine(threads=1).at_once == cores()
    assert LocalEngine(threads=cores()).at_once == 1


def test_results_are_tidy_and_sorted_and_hold_no_times(unbroken):
    lines = (unbroken / "results.csv").read_text().splitlines()
    assert lines[0].split(",")[:7] == ["job", "env", "config", "agent", "kappa", "seed", "total_steps"]
    assert "second" not in lines[0]
    assert len(lines) == 1 + 2 * 5  # random play, and every hundred steps
    order = [(line.split(",")[0], int(line.split(",")[7])) for line in lines[1:]]
    assert order == sorted(order)


def test_a_killed_study_resumes_to_identical_results(tiny, unbroken, tmp_path):
    out = tmp_path / "killed"
    words = ("study", "grid", tiny, "--out", out, "--quiet")
    status, _ = kill_when(lambda: len(checkpoints(out)) >= 2, *words, how=signal.SIGKILL)
    assert status == -signal.SIGKILL
    assert not all(StudyFolder(out).is_done(name) for name in StudyFolder(out).jobs)
    outcome = run_study(None, out)
    assert (outcome.done, outcome.failed) == (2, {})
    assert (out / "results.csv").read_bytes() == (unbroken / "results.csv").read_bytes()
    for run in sorted((out / "runs").iterdir()):
        assert same_learning(run, unbroken / "runs" / run.name)


def test_a_stopped_study_saves_and_says_how_to_continue(tiny, unbroken, tmp_path):
    out = tmp_path / "stopped"
    words = ("study", "grid", tiny, "--out", out, "--jobs", 1)
    status, said = kill_when(lambda: checkpoints(out), *words, how=signal.SIGINT)
    assert status == 130
    assert f"quantail study resume {out}" in said.replace("\n", "")
    folder = StudyFolder(out)
    (started,) = [name for name in folder.jobs if folder.run(name).path.exists()]
    assert not folder.failure(started)
    assert read_results(out).partial == "partial: 0 of 2 runs done"
    # Its process has saved and exited, so nobody holds the run.
    with folder.run(started).held():
        pass


def test_a_failed_run_does_not_stop_the_study_saves_its_reason_and_is_retried(
    tmp_path, monkeypatch, own_modules
):
    monkeypatch.setenv("FRAGILE_MENDED", str(tmp_path / "mended"))
    study = read_study(
        study_file(
            tmp_path,
            """
            games = ["fragile:Fragile-v0", "CartPole-v1"]
            ---
            [grid]
            kappa = [1.0]
            """,
        ),
        trust=["fragile"],
    )
    out, view = tmp_path / "out", EventLog()
    outcome = run_study(study, out, view=view)
    assert (outcome.done, outcome.total) == (1, 2)
    (reason,) = outcome.failed.values()
    assert "Fragile-v0 failed in step: RuntimeError: the pole broke" in reason
    assert Event("cartpole-kappa-1-s0", "done") in view.events
    folder = StudyFolder(out, ["fragile"])
    assert "the pole broke" in folder.log("fragile-kappa-1-s0").read_text()
    assert folder.state("fragile-kappa-1-s0").failed == reason

    (tmp_path / "mended").touch()
    view = EventLog()
    outcome = run_study(None, out, view=view, trust=["fragile"])
    assert (outcome.done, outcome.failed) == (2, {})
    assert {event.name for event in view.events} == {"fragile-kappa-1-s0"}
    assert not folder.failure("fragile-kappa-1-s0")


def test_an_environment_that_exits_the_process_is_a_failure_and_not_a_stop(tmp_path, own_modules):
    study = read_study(
        study_file(tmp_path, 'games = ["fragile:Quitter-v0"]\n---\n[grid]\nkappa = [1.0]'),
        trust=["fragile"],
    )
    folder = StudyFolder(tmp_path / "out", ["fragile"])
    folder.open(study)
    (name,) = folder.jobs
    said = "something in it ended its process: SystemExit: no more"
    assert run_job(folder.path, name, ["fragile"]) == f"failed: {said}"
    assert folder.failure(name) == said


def test_a_run_without_run_json_starts_only_if_nothing_can_be_lost(tiny, tmp_path):
    folder = StudyFolder(tmp_path / "out")
    folder.open(read_study(tiny))
    name = next(iter(folder.jobs))
    kept = folder.run(name).checkpoints / "000000050" / "agent.safetensors"
    kept.parent.mkdir(parents=True)
    kept.write_text("precious")
    assert "exists already and is not a run" in run_job(folder.path, name)
    assert kept.read_text() == "precious"
    shutil.rmtree(kept.parent)  # like the folder of a run that was killed before it started
    assert run_job(folder.path, name) == "done"


@pytest.mark.parametrize("by_ray", [False, True])
def test_a_run_that_gets_a_stop_request_is_stopped_and_not_failed(tiny, tmp_path, monkeypatch, by_ray):
    def fake_train(folder, name, log):
        end = SystemExit(143)
        if by_ray:
            end.ray_terminate_msg = "The process receives a SIGTERM."
        else:
            log.ended = True
        raise end

    monkeypatch.setattr("quantail.experiments.job._train", fake_train)
    folder = StudyFolder(tmp_path / "out")
    folder.open(read_study(tiny))
    assert run_job(folder.path, next(iter(folder.jobs))) == "stopped"


def test_the_engine_is_sized_for_the_largest_run_of_a_study(tmp_path, monkeypatch):
    text = 'games = ["CartPole-v1"]\n---\n[grid.where]\none = { threads = 1 }\nmany = '
    study = read_study(study_file(tmp_path, text + '{ threads = 3, device = "cuda" }'))
    needed = {}

    def make_engine(name, **needs):
        needed.update(needs)
        raise QuantailError("enough")

    monkeypatch.setattr("quantail.experiments.runner.make_engine", make_engine)
    with pytest.raises(QuantailError, match="enough"):
        run_study(study, tmp_path / "out", gpus=0.5)
    assert (needed["threads"], needed["gpus"]) == (3, 0.5)


def test_a_run_whose_process_is_killed_fails_with_the_name_of_the_signal(tiny, tmp_path):
    class Killer(View):
        def on_tick(self):
            for lock in (tmp_path / "out").glob("runs/cartpole-kappa-1-s0/.lock"):
                if lock.read_text() and checkpoints(tmp_path / "out"):
                    os.kill(int(lock.read_text()), signal.SIGKILL)
                    lock.write_text("")

    outcome = run_study(read_study(tiny), tmp_path / "out", view=Killer())
    assert outcome.done == 1
    assert outcome.failed["cartpole-kappa-1-s0"].startswith("its process was ended by SIGKILL")


def test_more_seeds_extend_a_study_and_keep_existing_results(tiny, unbroken, tmp_path):
    out = tmp_path / "more"
    shutil.copytree(unbroken, out)
    view = EventLog()
    outcome = run_study(changed(read_study(tiny), seeds=2), out, view=view)
    assert (outcome.done, outcome.total) == (4, 4)
    assert {event.name[-3:] for event in view.events} == {"-s1"}
    before = (unbroken / "results.csv").read_text().splitlines()
    assert set(before) < set((out / "results.csv").read_text().splitlines())
    assert run_study(read_study(tiny), out).total == 4  # seeds are never removed


def test_two_processes_cannot_run_or_change_one_study(tiny, unbroken, monkeypatch):
    monkeypatch.setattr("quantail.experiments.folder.PATIENCE", 0.1)
    code = (
        "import sys; from quantail.experiments.folder import StudyFolder\n"
        "with StudyFolder(sys.argv[1]).held(): print('held', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(unbroken)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        begin = time.monotonic()
        with pytest.raises(Exception, match=f"is being run by process {other.pid}"):
            run_study(None, unbroken)
        before = (unbroken / "study.json").read_bytes()
        with pytest.raises(Exception, match=f"is being run by process {other.pid}"):
            run_study(changed(read_study(tiny), seeds=3), unbroken)
        assert (unbroken / "study.json").read_bytes() == before
        assert time.monotonic() - begin < 30
        other.stdin.close()
