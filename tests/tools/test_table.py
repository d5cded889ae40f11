"""The tables of finished runs: kills, damage, merges."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quantail.errors import QuantailError
from tests.tools.rows import finished
from tools.results.plan import Spec
from tools.results.table import Tables

ROOT = Path(__file__).parent.parent.parent
# Records runs as fast as it can, and says which.
WRITER = """
import sys
from pathlib import Path
from tests.tools.rows import finished
from tests.tools.test_table import spec, tables_in

tables = tables_in(Path(sys.argv[1]))
for seed in range(int(sys.argv[2]), 10_000):
    tables.record(*finished(spec(seed)))
    print(seed, flush=True)
"""


def spec(seed, **changes):
    values = {"env": "CartPole-v1", "agent": "dqn", "preset": "small", "steps": 600, "episodes": 3}
    return Spec(**values | {"seed": seed, "settings": (("n_step", "3"),)} | changes)


def tables_in(folder):
    (folder / "results").mkdir(exist_ok=True)
    return Tables(folder / "results", folder / "runs" / ".results" / "finished")


def test_a_recorded_run_is_read_back_as_it_was(tmp_path):
    tables = tables_in(tmp_path)
    row, curve = finished(spec(0))
    tables.record(row, curve)
    assert tables.read() == ({row.id: row}, {row.id: curve})
    assert row.spec == spec(0)


def test_twenty_kills_while_rows_are_written_lose_none_and_double_none(tmp_path):
    tables, generator, told, first = tables_in(tmp_path), random.Random(0), set(), 0
    for _ in range(20):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(first)]
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        told.add(int(child.stdout.readline()))  # it is writing now
        time.sleep(generator.uniform(0, 0.05))
        child.send_signal(signal.SIGKILL)
        told |= {int(line) for line in child.stdout.read().split("\n")[:-1]}
        child.wait()
        first = max(told) + 1
    tables.restore()
    runs, curves = tables.read()
    assert {row.seed for row in runs.values()} >= told  # one may have been written and not told
    assert len(runs) <= len(told) + 20
    lines = tables.runs.read_text().splitlines()
    assert len(lines) == len(runs) + 1
    for seed in told:
        row, curve = finished(spec(seed))
        assert runs[row.id] == row
        assert curves[row.id] == curve
    assert len(tables.curves.read_text().splitlines()) == 11 * len(runs) + 1


@pytest.mark.parametrize("missing", ["runs", "curves", "both"])
def test_rows_that_a_branch_switch_takes_away_are_added_again(tmp_path, missing):
    tables = tables_in(tmp_path)
    for seed in (0, 1):
        tables.record(*finished(spec(seed)))
    before = tables.read()
    for path in [tables.runs, tables.curves]:
        if missing in (path.stem, "both"):
            path.unlink()
    tables.restore()
    assert tables.read() == before


def test_a_later_run_replaces_the_row_and_the_curve_of_an_earlier_one(tmp_path):
    tables = tables_in(tmp_path)
    tables.record(*finished(spec(0), mean=1.0))
    tables.record(*finished(spec(1)))
    row, curve = finished(spec(0), mean=2.0, date="2026-02-01T00:00:00.000+00:00")
    tables.record(row, curve)
    runs, curves = tables.read()
    assert (runs[row.id], curves[row.id]) == (row, curve)
    assert len(tables.runs.read_text().splitlines()) == 3


def test_rows_that_a_merge_brings_twice_count_once(tmp_path):
    tables = tables_in(tmp_path)
    row, curve = finished(spec(0))
    tables.record(row, curve)
    for path in (tables.runs, tables.curves):
        header, *lines = path.read_text().splitlines(keepends=True)
        path.write_text(header + "".join(lines * 2))
    assert tables.read() == ({row.id: row}, {row.id: curve})
    tables.record(*finished(spec(1)))
    assert len(tables.runs.read_text().splitlines()) == 3


def test_git_keeps_the_rows_of_both_branches(home):
    tables = tables_in(home.path)
    records = iter((tables.records, home.path / "others"))
    for branch, seeds in (("one", (0, 1)), ("two", (0, 2))):
        home.git("checkout", "-q", "-b", branch, "origin/HEAD")
        tables.records = next(records)
        for seed in seeds:
            tables.record(*finished(spec(seed)))
        home.git("add", "results")
        home.git("commit", "-qm", branch)
    home.git("merge", "-q", "one")
    runs, curves = tables.read()
    assert sorted(row.seed for row in runs.values()) == [0, 1, 2]
    assert {name: len(curve) for name, curve in curves.items()} == dict.fromkeys(runs, 11)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda text: text[:-20], "damaged in line 3: it is cut off"),
        (lambda text: text + "<<<<<<< HEAD\n", "damaged in line 4: it has 1 cells instead of 20"),
        (lambda text: text.replace(",600,600,", ",600,many,", 1), "line 2: 'many' is not a number"),
        (lambda text: text.replace(",dqn,", ",iqn,", 1), "follows from its content"),
        (lambda text: text.replace("n_step=3", "n_step", 1), "settings are NAME=VALUE"),
        (lambda text: "game,score\n" + text, "is not a table of the results queue"),
        (lambda _: "", "is not a table of the results queue"),
    ],
)
def test_a_damaged_table_is_named_with_its_line_and_left_as_it_is(tmp_path, damage, sentence):
    tables = tables_in(tmp_path)
    for seed in (0, 1):
        tables.record(*finished(spec(seed)))
    tables.runs.write_text(damage(tables.runs.read_text()))
    before = tables.runs.read_bytes()
    with pytest.raises(QuantailError) as found:
        tables.record(*finished(spec(2)))
    assert sentence in str(found.value)
    assert str(tables.runs) in str(found.value)
    assert "\n" not in str(found.value)
    assert tables.runs.read_bytes() == before
    tables.runs.unlink()  # the run that ended meanwhile has its record
    tables.restore()
    assert sorted(row.seed for row in tables.read()[0].values()) == [0, 1, 2]
