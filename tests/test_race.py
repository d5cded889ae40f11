"""The tool tools/race.py, which times two versions in turn."""

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).parent.parent
QUICK = ("-s", "learning_starts=50", "-s", "batch-size=8")


@pytest.fixture
def race(monkeypatch):
    """The module race, whose turns are short."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    module = importlib.import_module("race")
    monkeypatch.setattr(module, "TURN", 0.01)
    yield module
    for name in ("race", "race_worker", "bits"):
        sys.modules.pop(name, None)


def run(race, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["race.py", *map(str, words)])
    return race.main()


def last(path):
    return path / "checkpoints" / (path / "checkpoints" / "last").read_text().strip()


@pytest.mark.parametrize("count", range(6, 60))
def test_the_interval_of_a_median_is_the_smallest_with_95_percent_confidence(race, count):
    low, high = race.median_interval(count)
    assert low + high == count - 1

    def coverage(index):  # the number of values below the median is at least index + 1, on both sides
        return sum(math.comb(count, k) for k in range(index + 1, count - index)) / 2**count

    assert coverage(low) >= 0.95 > coverage(low + 1)


def test_a_ratio_compares_times_of_the_same_round_so_that_drift_cancels(race):
    drift = [1.0, 5.0, 2.0, 1.0, 3.0, 1.0, 9.0]
    found = race.ratio_of("wall", [2 * one for one in drift], drift)
    assert (found.ratio, found.low, found.high) == (2.0, 2.0, 2.0)
    assert (found.base_ms, found.other_ms) == (4.0, 2.0)


def test_the_sides_take_turns_and_each_begins_every_other_round(race):
    class Recorded:
        def __init__(self, name, seconds):
            self.name, self.about = name, {"seconds": seconds}

        def turn(self, cycles):
            order.append((self.name, cycles))
            return {"wall": 1.0}

    order = []
    cycles, found = race.race([Recorded("a", 0.001), Recorded("b", 0.005)], seconds=0)
    assert cycles == 2  # as many as the slower one does in a turn
    assert {count for _, count in order} == {2}
    names = "".join(name for name, _ in order)
    assert names == "ab" + "abba" * (race.LEAST // 2)  # the first round is discarded
    assert [len(turns) for turns in found] == [race.LEAST, race.LEAST]


def test_a_race_shows_the_times_of_cycles_and_phases(race, monkeypatch, capsys, tmp_path):
    file = tmp_path / "race.json"
    words = (ROOT, "small", "--agent", "dqn", "--seconds", 0, "--json", file, *QUICK)
    assert run(race, monkeypatch, *words, "--set-other", "train-frequency=4") == 0
    shown = capsys.readouterr().out
    (row,) = json.loads(file.read_text())["rows"]
    assert row["row"] == "small dqn"
    assert row["rounds"] == race.LEAST
    assert [about["steps"] for about in row["about"]] == [2, 4]
    ratios = {one["name"]: one for one in row["ratios"]}
    assert set(ratios) == {"wall", "cpu", "acting", "environment", "replay", "learning"}
    for one in ratios.values():
        assert 0 < one["low"] <= one["ratio"] <= one["high"]
        assert one["name"] in shown
    for side in ("base_ms", "other_ms"):
        phases = sum(ratios[name][side] for name in list(ratios)[2:])
        assert 0.5 * ratios["cpu"][side] < phases < 1.2 * ratios["cpu"][side]


def test_both_sides_begin_with_the_weights_and_settings_of_a_run(race, cartpoles, tmp_path):
    row = race.row_of_run(cartpoles / "iqn-1")
    assert row.name == "small iqn at step 200"
    worker = importlib.import_module("race_worker")
    row.job["settings"]["from_a_later_version"] = 1  # is left out
    job = row.job | {"changes": {"n_step": "3"}, "folder": str(ROOT)}
    trainer, folder = worker.prepared(job)
    with folder:
        saved = load_file(last(cartpoles / "iqn-1") / "agent.safetensors")
        for network in (trainer.learner.online, trainer.learner.target):
            found = network.state_dict()
            assert found.keys() == saved.keys()
            assert all(torch.equal(found[name], saved[name]) for name in saved)
        config = trainer.config
        trainer.close()
    assert config.network.head_size == 16  # as the run has it
    assert config.learner.n_step == 3
    assert config.exploration.epsilon_start == config.exploration.epsilon_end


def test_cycles_are_as_many_steps_as_there_are_between_updates(race, monkeypatch, tmp_path):
    worker = importlib.import_module("race_worker")
    settings = {"learning_starts": "50", "num_envs": "3", "train_frequency": "2", "batch_size": "8"}
    job = race.row_of("small", "dqn", "").job | {"changes": settings, "folder": str(ROOT)}
    asked = iter(['{"cycles": 5}\n', "{}\n"])
    monkeypatch.setattr(sys, "stdin", type("Lines", (), {"readline": lambda self: next(asked)})())
    about, turn, end = worker.turns(job)
    assert (about["steps"], about["updates"]) == (2, 3)  # 2 calls are 6 steps and 3 updates
    assert turn["wall"] > 0
    assert 0 <= end["zeros"] <= 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["no-such-commit"], "race: 'no-such-commit' is not a commit of this repository."),
        ([ROOT, "tiny"], "race: rows are small, minatar, atari-paper, atari-fast, not 'tiny'."),
        ([ROOT, "small", "--set", "n_step"], "race: a setting is given as NAME=VALUE, not as 'n_step'."),
        ([ROOT, "--checkpoint", "nowhere"], "race: nowhere is not a run with a checkpoint"),
        (
            [ROOT, "small", "-s", "n_steps=3"],
            "race: the working tree refuses: unknown setting 'n_steps'.",
        ),
        (
            [ROOT, "small", "-s", "n_step=x"],
            "race: the working tree refuses: n_step takes a whole number",
        ),
    ],
)
def test_invalid_input_gets_one_sentence(race, monkeypatch, words, expected):
    with pytest.raises(SystemExit) as raised:
        run(race, monkeypatch, *words)
    assert str(raised.value).startswith(expected)


def test_a_version_that_is_too_old_gets_one_sentence(race, monkeypatch, tmp_path):
    (tmp_path / "quantail").mkdir()
    (tmp_path / "quantail" / "__init__.py").touch()
    with pytest.raises(SystemExit, match=r"is too old to be raced \(.*\): commits since c39b958 can be"):
        run(race, monkeypatch, tmp_path, "small")


def test_a_run_whose_weights_do_not_fit_gets_one_sentence(race, monkeypatch, cartpoles):
    with pytest.raises(SystemExit, match=r"has a network that the weights in .* do not fit"):
        run(race, monkeypatch, ROOT, "--checkpoint", cartpoles / "iqn-0", "-s", "head_size=8")


def test_the_command_is_as_the_makefile_calls_it():
    done = subprocess.run(
        ["make", "-n", "race", "BASE=main", "ROWS=minatar small"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "tools/race.py main minatar small" in done.stdout
