import csv
import inspect
import json
import shutil

import numpy as np
import pytest

import quantail
from quantail.training.history import group_runs, read_history


def changed(run, target, **settings):
    """A copy of a run whose settings say something else."""
    shutil.copytree(run, target)
    about = json.loads((target / "run.json").read_text())
    about["settings"] |= settings
    (target / "run.json").write_text(json.dumps(about))
    return target


def test_runs_that_differ_by_their_seed_are_one_group_and_others_are_not(cartpoles):
    groups = group_runs([read_history(cartpoles / name) for name in ("dqn-0", "iqn-1", "iqn-0")])
    assert [(group.label, [run.settings.seed for run in group.runs]) for group in groups] == [
        ("dqn", [0]),
        ("iqn", [0, 1]),
    ]


def test_a_label_tells_what_differs_where_the_name_does_not(cartpoles, tmp_path):
    other = changed(cartpoles / "iqn-0", tmp_path / "other", kappa=0.5, steps=999, threads=7)
    groups = group_runs([read_history(cartpoles / "iqn-0"), read_history(other)])
    assert [group.label for group in groups] == ["iqn, kappa 1.0", "iqn, kappa 0.5"]


def test_curves_are_taken_where_every_seed_was_evaluated(cartpoles, tmp_path):
    short = shutil.copytree(cartpoles / "iqn-1", tmp_path / "short")
    table = short / "evaluations.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:-1]) + "\n")
    (group,) = group_runs([read_history(cartpoles / "iqn-0"), read_history(short)])
    steps, means = group.curves()
    assert steps.tolist() == [100.0]
    for row, run in zip(means, group.runs, strict=True):
        assert row[0] == run.curve["mean"][run.curve["steps"] == 100.0]


def test_a_history_is_what_the_run_wrote(cartpoles):
    history = read_history(cartpoles / "iqn-0")
    assert history.curve["steps"].tolist() == [100.0, 200.0]
    assert np.isfinite(history.random)
    assert sum(history.seconds.values()) > 0
    assert history.protocol.label.startswith("own v1")


def test_a_row_that_is_being_written_is_left_out(cartpoles, tmp_path):
    run = shutil.copytree(cartpoles / "iqn-0", tmp_path / "run")
    table = run / "evaluations.csv"
    table.write_text(table.read_text() + "300,300,agent,own")
    assert read_history(run).curve["steps"].tolist() == [100.0, 200.0]


def test_a_run_before_its_first_checkpoint_can_be_read(cartpoles, tmp_path):
    run = shutil.copytree(cartpoles / "iqn-0", tmp_path / "run")
    shutil.rmtree(run / "checkpoints")
    (run / "evaluations.csv").unlink()
    history = read_history(run)
    assert history.seconds == {}
    assert len(history.curve["steps"]) == 0
    assert np.isnan(history.random)
    assert group_runs([history])[0].curves()[1].shape == pytest.approx((1, 0))


def test_no_evaluation_in_training_plays_the_episodes_by_which_the_run_is_scored_later(cartpoles):
    """Else the choice of the best checkpoint would flatter its score."""
    with (cartpoles / "iqn-0" / "evaluations.csv").open() as file:
        rows = list(csv.DictReader(file))
    seeds = [int(row["seed"]) for row in rows]
    assert len(set(seeds)) == len(seeds) == 3
    assert inspect.signature(quantail.evaluate).parameters["seed"].default not in seeds


def test_every_evaluation_tells_its_protocol(cartpoles):
    with (cartpoles / "iqn-0" / "evaluations.csv").open() as file:
        random, *agent = csv.DictReader(file)
    own = read_history(cartpoles / "iqn-0").protocol
    assert {row["protocol"] for row in agent} == {own.label}
    assert random["protocol"] == own.changed(epsilon=1.0).label
