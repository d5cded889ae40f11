"""`quantail.read_run`: a run as arrays."""

import json
import shutil
import sys

import numpy as np
import pytest

import quantail
from quantail.errors import QuantailError
from quantail.runs.tables import TABLES
from tests.helpers.runs import flags, kill_when, quick, rows
from tests.helpers.sealed import editing


@pytest.fixture
def run(cartpoles, tmp_path):
    return shutil.copytree(cartpoles / "iqn-0", tmp_path / "run")


def test_a_run_has_its_settings_and_all_tables(run):
    found = quantail.read_run(run)
    about = json.loads((run / "run.json").read_text())
    assert found.path == run
    assert found.settings == about["settings"]
    assert found.about["env"] == "CartPole-v1"
    assert found.metrics["steps"].tolist() == list(range(20, 201, 20))
    assert found.evaluations["policy"].tolist() == ["random", "agent", "agent"]
    assert np.isfinite(found.metrics["loss"][-1])
    assert found.episodes["return"].tolist() == found.episodes["length"].tolist()
    for name in TABLES:
        assert len(getattr(found, name)["steps"]) == len(rows(run, name))


def test_a_run_cannot_be_changed_through_its_object(run):
    with pytest.raises(AttributeError):
        quantail.read_run(run).metrics = {}


def test_a_frame_is_the_table_in_pandas(run):
    found = quantail.read_run(run)
    frame = found.frame("evaluations")
    assert list(frame) == list(found.evaluations)
    assert frame["mean"].tolist() == found.evaluations["mean"].tolist()
    assert frame["steps"].dtype == np.int64


def test_without_pandas_a_frame_says_what_it_needs(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        QuantailError, match=r"^Run\.frame needs pandas: pip install 'quantail\[stats\]'"
    ):
        quantail.read_run(run).frame("metrics")


def test_a_frame_needs_no_other_package_of_its_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "rliable.library", None)
    assert len(quantail.read_run(run).frame("timing")) == 10


def test_an_unknown_table_is_named_beside_those_that_exist(run):
    with pytest.raises(
        QuantailError, match="takes metrics, timing, episodes or evaluations, not 'metric'"
    ):
        quantail.read_run(run).frame("metric")


def test_a_killed_run_has_the_rows_that_it_wrote(tmp_path):
    run = tmp_path / "run"
    words = flags(quick("iqn") | {"steps": 1_000_000, "evaluation_every": 10_000})
    kill_when(
        lambda: len(rows(run, "metrics")) > 4, "train", "CartPole-v1", "--quiet", "--out", run, *words
    )
    with (run / "metrics.csv").open("a") as file:
        file.write("999,99")
    found = quantail.read_run(run)
    steps = found.metrics["steps"].tolist()
    assert len(steps) >= 4
    assert steps == list(range(20, steps[-1] + 1, 20))


def test_a_run_that_has_not_written_a_table_yet_has_empty_columns(run):
    for name in TABLES:
        (run / f"{name}.csv").unlink()
    assert quantail.read_run(run).metrics["loss"].tolist() == []


@pytest.mark.parametrize(
    ("path", "says"), [("none", "there is no run at .*none"), (".", "is not a run: it has no run.json")]
)
def test_a_path_without_a_run_is_named(path, says, tmp_path):
    with pytest.raises(QuantailError, match=says):
        quantail.read_run(tmp_path / path)


def test_a_description_without_settings_is_damaged(run):
    with editing(run / "run.json") as about:
        del about["settings"]
    with pytest.raises(QuantailError, match=r"run\.json is damaged: it lacks settings\."):
        quantail.read_run(run)


def test_a_damaged_table_is_named(run):
    (run / "episodes.csv").write_text("day,weight\n")
    with pytest.raises(QuantailError, match=r"episodes\.csv is damaged or is not a table of a run"):
        quantail.read_run(run)
