"""The queue with real runs: kills, new clones, stale and failing rows."""

import random
import shutil
import signal
import subprocess

import pytest

from tests.tools.conftest import QUEUE
from tests.tools.observe import processes, rows, wait_until


def kill_at_random(home, kills, generator):
    """Start the queue and kill it, again and again; return the rows that were seen after each kill."""
    seen = {}
    for _ in range(kills):
        child = home.start("run", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            child.wait(generator.uniform(0.5, 9))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        assert "results:" not in child.communicate()[1]
        wait_until(lambda: not processes(home), 10)  # nothing trains on
        for row in rows(home):
            assert seen.setdefault(row["id"], row) == row
    return seen


def finish_after_kills(home, kills):
    seen = kill_at_random(home, kills, random.Random(kills))
    code, out, errors = home.call("run")
    assert (code, errors) == (0, "")
    assert "the queue is done; 0 runs failed" in out
    found = rows(home)
    assert sorted(row["seed"] for row in found) == ["0", "1"]
    assert all(row in found for row in seen.values())
    evaluations = [(row["id"], row["steps"]) for row in rows(home, "curves")]
    assert evaluations == [(row["id"], at) for row in found for at in ("0", "300", "600")]
    assert not list((home.site / "runs").iterdir())
    return home


@pytest.fixture(scope="module")
def finished(template, tmp_path_factory):
    """A clone in which the queue was killed four times and then came to its end."""
    return finish_after_kills(template.clone(tmp_path_factory.mktemp("queue") / "home"), 4)


def test_four_kills_lose_no_row_and_double_none(finished):
    row = rows(finished)[0]
    assert row["commit"] == finished.git("rev-parse", "HEAD")
    assert (row["kernels"], row["steps"], row["trained"]) == ("torch", "600", "600")
    assert row["protocol"] == "sticky actions 0, 2 actions, ε 0, 3 episodes with the last weights"
    assert len(row["fingerprint"]) == 16
    code, out, _ = finished.call("status")
    assert code == 0
    assert "in all: 2 runs done, 0 runs left" in out


@pytest.mark.slow
def test_twenty_kills_lose_no_row_and_double_none(home):
    finish_after_kills(home, 20)


def test_a_new_clone_with_only_the_tables_goes_on_and_runs_stale_rows_again(finished, home):
    for name in ("runs", "curves"):
        shutil.copy(finished.results / f"{name}.csv", home.results)
    first, second = rows(home)
    text = (home.results / "runs.csv").read_text()
    missing = "".join(line for line in text.splitlines(keepends=True) if second["id"] not in line)
    stale = missing.replace(first["fingerprint"], "0123456789abcdef")
    (home.results / "runs.csv").write_text(stale)
    code, out, _ = home.call("check")
    assert code == 1
    assert out.startswith(f"stale    {first['id']}  dqn on CartPole-v1, seed 0, tiny")
    assert "1 row: 0 current, 1 stale, 0 that cannot be compared here." in out
    code, out, errors = home.call("run")
    assert (code, errors) == (0, "")
    order = [line for line in out.splitlines() if line.endswith("steps")]
    assert [line.partition(":")[0][-6:] for line in order] == ["seed 1", "seed 0"]  # stale ones last
    again = {row["seed"]: row for row in rows(home)}
    assert len(rows(home)) == 2
    for row in (first, second):  # the same seed gives the same bytes
        for column in ("id", "fingerprint", "mean", "std"):
            assert again[row["seed"]][column] == row[column]
    assert home.call("check")[0] == 0


def test_rows_from_elsewhere_are_compared_by_computing_both_or_said_to_be_unknown(finished, home):
    text = (finished.results / "runs.csv").read_text()
    first, second = rows(finished)
    text = text.replace(first["processor"], "another processor").replace(first["fingerprint"], "0" * 16)
    lines = text.splitlines(keepends=True)
    lines[2] = lines[2].replace(second["commit"], "1" * 40)
    (home.results / "runs.csv").write_text("".join(lines))
    code, out, _ = home.call("check")
    assert code == 0
    assert f"unknown  {second['id']}" in out
    assert "is not a commit of this repository" in out
    assert "2 rows: 1 current, 0 stale, 1 that cannot be compared here." in out


def test_a_run_that_fails_is_named_and_the_queue_goes_on(home):
    queue = home.results / "queue.toml"
    queue.write_text(QUEUE.replace('"CartPole-v1"', '"Pendulum-v1", "CartPole-v1"'))
    code, out, errors = home.call("run", "--queue", str(queue), "--jobs", "2")
    assert code == 1
    assert "the queue is done; 2 runs failed" in out
    assert errors.count("failed: dqn on Pendulum-v1") == 2
    assert "Traceback" not in errors
    assert sorted(row["seed"] for row in rows(home)) == ["0", "1"]


def test_a_queue_beside_a_damaged_table_does_not_start(home):
    path = home.results / "runs.csv"
    path.write_text("game,score\nPong,21\n")
    code, _, errors = home.call("run")
    assert code == 2
    assert errors.startswith(f"results: {path} is not a table of the results queue")
    assert errors.count("\n") == 1
    assert path.read_text() == "game,score\nPong,21\n"
