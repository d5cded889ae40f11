"""A queue at work: second starts, newer commits, stops."""

import signal
import subprocess
import sys

import pytest

from tests.tools.conftest import QUEUE
from tests.tools.observe import processes, rows, wait_until


def test_a_second_start_is_refused_and_a_newer_commit_is_taken_between_runs(home):
    first = home.git("rev-parse", "HEAD")
    child = home.start("run", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: list((home.site / "runs").glob("*/run.json")))
    child.send_signal(signal.SIGSTOP)  # so that the request comes before the next run
    code, _, errors = home.call("run")
    assert code == 2
    assert errors == f"results: the results queue of this clone is being run by process {child.pid}.\n"
    (home.path / "note.txt").write_text("a change")
    home.git("add", "note.txt")
    home.git("commit", "-qm", "Change something")
    second = home.git("rev-parse", "HEAD")
    assert home.call("update")[1] == f"the queue takes commit {second[:7]} after the present run\n"
    (home.path / "tools" / "results" / "queue.py").write_text("broken")  # nothing runs from here
    child.send_signal(signal.SIGCONT)
    out, errors = child.communicate(timeout=300)
    assert (child.returncode, errors) == (0, "")
    assert f"going on with commit {second[:7]}" in out
    assert [row["commit"] for row in rows(home)] == [first, second]
    assert not processes(home)


def test_a_stop_saves_the_run_under_way_and_leaves_nothing_running(home):
    child = home.start("run", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: list((home.site / "runs").glob("*/run.json")))
    assert "under way: dqn on CartPole-v1, seed 0" in home.call("status")[1]
    child.terminate()
    child.communicate(timeout=60)
    assert child.returncode == 128 + signal.SIGTERM
    assert not processes(home)
    assert rows(home) == []


def test_a_study_of_its_own_saves_when_it_is_stopped_and_ends_when_its_time_is_up(home):
    queue = home.results / "queue.toml"
    alone = 'name = "pong"\nbackground = false\nhours = 2'
    long = QUEUE.replace('name = "tiny"', alone).replace("steps = 600", "steps = 1_000_000")
    long = long.replace("evaluation_every = 300", "evaluation_every = 1_000_000")
    queue.write_text(long.replace("checkpoint_every = 200", "checkpoint_every = 1_000_000"))
    site = home.path / "runs" / ".results-pong" / "runs"
    child = home.start("pong", "--queue", str(queue))
    wait_until(lambda: any(len(p.read_text().splitlines()) > 1 for p in site.glob("*/timing.csv")))
    child.terminate()
    assert child.wait(60) == 128 + signal.SIGTERM
    (saved,) = site.glob("*/checkpoints/0*")  # by the stop alone
    queue.write_text(queue.read_text().replace("hours = 2", "hours = 0.001").replace("[0, 1]", "[0]"))
    assert home.call("pong", "--queue", str(queue))[0] == 0
    (row,) = rows(home)
    assert (row["steps"], row["trained"]) == ("1000000", str(int(saved.name)))
    assert rows(home, "curves")[0]["policy"] == "random"
    assert "0 runs left" in home.call("status", "--queue", str(queue))[1]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_kill_ends_the_training_process_too(home):
    queue = home.results / "queue.toml"
    queue.write_text(QUEUE.replace("steps = 600", "steps = 1_000_000"))
    child = home.start("run", "--queue", str(queue))
    wait_until(lambda: list((home.site / "runs").glob("*/run.json")))
    assert processes(home)
    child.kill()
    child.wait()
    wait_until(lambda: not processes(home), 3)
