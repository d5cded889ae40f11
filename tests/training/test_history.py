import csv
import inspect
import json
import shutil

import numpy as np
import pytest

import quantail
from quantail.errors import QuantailError
from quantail.runs.history import group_runs, read_history
from tests.helpers.sealed import editing


def changed(run, target, *, preset="small", env="CartPole-v1", **settings):
    """Copy a run and change its preset, environment or settings."""
    shutil.copytree(run, target)
    with editing(target / "run.json") as about:
        about |= {"env": env}
        about["settings"] |= settings | {"preset": preset}
    return target


def test_runs_that_differ_only_by_their_seed_form_one_group(cartpoles):
    groups = group_runs([read_history(cartpoles / name) for name in ("dqn-0", "iqn-1", "iqn-0")])
    assert [(group.label, [run.config.run.seed for run in group.runs]) for group in groups] == [
        ("dqn", [0]),
        ("iqn", [0, 1]),
    ]


def test_labels_list_the_differences_between_agents_of_the_same_name(cartpoles, tmp_path):
    other = changed(cartpoles / "iqn-0", tmp_path / "other", kappa=0.5, steps=999, threads=7)
    groups = group_runs([read_history(cartpoles / "iqn-0"), read_history(other)])
    assert [group.label for group in groups] == ["iqn, kappa 1.0", "iqn, kappa 0.5"]


def test_curves_have_the_steps_at_which_every_seed_was_evaluated(cartpoles, tmp_path):
    short = shutil.copytree(cartpoles / "iqn-1", tmp_path / "short")
    table = short / "evaluations.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:-1]) + "\n")
    (group,) = group_runs([read_history(cartpoles / "iqn-0"), read_history(short)])
    steps, means = group.curves()
    assert steps.tolist() == [100.0]
    for row, run in zip(means, group.runs, strict=True):
        assert row[0] == run.curve["mean"][run.curve["steps"] == 100.0]


def test_a_history_has_what_the_run_wrote(cartpoles):
    history = read_history(cartpoles / "iqn-0")
    assert history.curve["steps"].tolist() == [100.0, 200.0]
    assert np.isfinite(history.random)
    assert sum(history.seconds.values()) > 0
    assert history.protocol.label.startswith("own v1")


def test_a_partially_written_row_is_ignored(cartpoles, tmp_path):
    run = shutil.copytree(cartpoles / "iqn-0", tmp_path / "run")
    table = run / "evaluations.csv"
    whole = table.read_text()
    row = whole.splitlines()[-1].replace("200", "300", 1)
    for partial in ("300,300,agent,own", row, "300,300,agent,own\n"):  # a number may be cut off, too
        table.write_text(whole + partial)
        assert read_history(run).curve["steps"].tolist() == [100.0, 200.0]
    table.write_text(f"{whole}{row}\n")
    assert read_history(run).curve["steps"].tolist() == [100.0, 200.0, 300.0]


def test_a_run_before_its_first_checkpoint_can_be_read(cartpoles, tmp_path):
    run = shutil.copytree(cartpoles / "iqn-0", tmp_path / "run")
    shutil.rmtree(run / "checkpoints")
    (run / "evaluations.csv").unlink()
    history = read_history(run)
    assert history.seconds == {}
    assert len(history.curve["steps"]) == 0
    assert np.isnan(history.random)
    assert group_runs([history])[0].curves()[1].shape == pytest.approx((1, 0))


def test_evaluations_during_training_and_the_final_evaluation_use_different_seeds(cartpoles):
    """Otherwise the selection of the best checkpoint would bias its score."""
    with (cartpoles / "iqn-0" / "evaluations.csv").open() as file:
        rows = list(csv.DictReader(file))
    seeds = [int(row["seed"]) for row in rows]
    assert len(set(seeds)) == len(seeds) == 3
    assert inspect.signature(quantail.evaluate).parameters["seed"].default not in seeds


def test_every_evaluation_records_its_protocol(cartpoles):
    with (cartpoles / "iqn-0" / "evaluations.csv").open() as file:
        random, *agent = csv.DictReader(file)
    own = read_history(cartpoles / "iqn-0").protocol
    assert {row["protocol"] for row in agent} == {own.label}
    assert random["protocol"] == own.changed(epsilon=1.0).label


def labels(*runs):
    return [group.label for group in group_runs([read_history(run) for run in runs])]


def test_runs_of_one_game_under_two_presets_are_two_agents(cartpoles, tmp_path):
    mine = changed(cartpoles / "iqn-1", tmp_path / "mine", preset="mine.toml", kappa=0.5)
    assert labels(cartpoles / "iqn-0", mine) == ["iqn, kappa 1.0", "iqn, kappa 0.5"]


def test_presets_that_differ_in_many_settings_are_distinguished_by_their_names(cartpoles, tmp_path):
    many = {"batch_size": 9, "learning_rate": 0.5, "target_update_interval": 7, "learning_starts": 77}
    runs = [
        changed(cartpoles / "iqn-0", tmp_path / "a", preset="a/mine.toml", **many),
        changed(cartpoles / "iqn-0", tmp_path / "b", preset="a/mine.toml", **many | {"kappa": 0.5}),
    ]
    assert labels(cartpoles / "iqn-0", *runs) == [
        "iqn, small", "iqn, mine.toml, kappa 1.0", "iqn, mine.toml, kappa 0.5"
    ]  # fmt: skip
    other = changed(cartpoles / "iqn-1", tmp_path / "c", preset="b/mine.toml", head_size=3)
    assert labels(runs[0], other)[0] == "iqn, a/mine.toml"


def test_games_of_one_family_under_two_presets_are_two_agents(cartpoles, tmp_path):
    first = changed(cartpoles / "iqn-0", tmp_path / "a", preset="atari-paper", env="ALE/Pong-v5")
    options = {"preset": "atari-fast", "env": "BreakoutNoFrameskip-v4", "kappa": 0.5}
    second = changed(cartpoles / "iqn-0", tmp_path / "b", **options)
    assert labels(first, second) == ["iqn, kappa 1.0", "iqn, kappa 0.5"]
    other_family = changed(cartpoles / "iqn-0", tmp_path / "c", preset="m", env="MinAtar/Freeway-v1")
    assert labels(first, other_family) == ["iqn", "iqn"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [("risk", "cvar:0.1"), ("behaviour_risk", "wang:1"), ("target_risk", "cpw:0.71"),
     ("evaluation_risk", "pow:2"), ("risk_anneal_steps", 50)],
)  # fmt: skip
def test_runs_with_different_risk_configurations_are_different_agents(
    cartpoles, tmp_path, setting, value
):
    other = changed(cartpoles / "iqn-1", tmp_path / "other", **{setting: value})
    first, second = group_runs([read_history(cartpoles / "iqn-0"), read_history(other)])
    assert first.label != second.label
    assert str(value) in second.label


def test_steps_and_seconds_are_those_of_the_last_checkpoint(cartpoles, tmp_path):
    run = shutil.copytree(cartpoles / "iqn-0", tmp_path / "run")
    assert read_history(run).steps == 200
    (run / "checkpoints" / "last").write_text("000000150\n")
    state = json.loads((run / "checkpoints" / "000000150" / "state.json").read_text())
    history = read_history(run)
    assert (history.steps, history.seconds) == (150, state["clock"])


@pytest.mark.parametrize("change", [{"clock": [1]}, {"clock": {"acting": "x"}}])
def test_damaged_timing_is_reported_with_its_file(cartpoles, tmp_path, change):
    run = shutil.copytree(cartpoles / "iqn-0", tmp_path / "run")
    with editing(run / "checkpoints" / "000000200" / "state.json") as state:
        state |= change
    with pytest.raises(QuantailError, match=r"state\.json is damaged"):
        read_history(run)
