"""The bounds of the benchmarks hold exactly the products of the network, and the rows are consistent."""

import json
import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from quantail.bench import measure
from quantail.bench.learner import ATARI, MINATAR, bound_of, build
from quantail.bench.measure import LEAST, WARM_UP, race
from quantail.bench.scenes import play
from quantail.recipes import compose
from tests.helpers.runs import command

AGENTS = ("iqn", "qr-dqn", "c51", "rainbow", "rainbow-iqn", "dqn", "m-iqn")


def flops(work):
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


@pytest.mark.parametrize("shape", [ATARI, MINATAR], ids=["atari", "minatar"])
@pytest.mark.parametrize(
    "changes",
    [
        *({"agent": agent} for agent in AGENTS),
        {"embedding": "mlp"},
        {"merge": "concatenate", "double": True},
    ],
    ids=str,
)
def test_the_bound_has_the_same_dense_products_as_the_update(changes, shape):
    env, preset, _ = shape
    settings = compose(preset, {"batch_size": 4} | changes)
    learner, replay = build(settings, env, preset)
    batch = replay.sample()
    bound = flops(bound_of(learner, batch))
    for network in (learner.online, learner.target):
        network.use_dense_products()
    assert bound == pytest.approx(flops(lambda: learner.update(batch)), rel=0.002)


def test_an_update_at_the_papers_settings_is_34_gflop():
    settings = compose("atari-paper", {})
    learner, replay = build(settings, *ATARI[:2])
    bound = bound_of(learner, replay.sample())
    assert flops(bound) == pytest.approx(34.3e9, rel=0.01)


def test_the_ratio_is_the_median_over_rounds_without_the_warm_up(monkeypatch):
    ours = [1000.0] * WARM_UP + [2.0, 4.0, 8.0, 2.0, 4.0, 8.0, 2.0]
    theirs = [1.0] * WARM_UP + [1.0, 2.0, 4.0, 3.0, 2.0, 4.0, 1.0]
    times = iter([time for pair in zip(ours, theirs, strict=True) for time in pair])
    monkeypatch.setattr(measure, "_milliseconds", lambda work: next(times))
    assert len(ours) == LEAST + WARM_UP
    row = race("learner", "x", None, None, seconds=0.0, scale=2.0, zeros=0.5)
    assert (row.median_ms, row.best_ms, row.bound_ms) == (2.0, 1.0, 1.0)
    assert row.ratio == 0.5
    assert row.to_dict()["zeros"] == 0.5


def test_scenes_are_real_play_and_repeat_to_fill_a_replay():
    scenes = play("MinAtar/Breakout-v1", "minatar", 300)
    assert 1 < scenes.first.sum() < 100
    assert scenes.rewards.sum() > 0
    store = scenes.store(700)
    store.check()
    assert len(store) == 700


def test_the_command_prints_and_writes_rows_with_their_bounds(tmp_path, capsys):
    file = tmp_path / "bench.json"
    threads = torch.get_num_threads()
    assert command("bench", "act", "--seconds", 0, "--json", file) == 0
    assert torch.get_num_threads() == threads
    shown = capsys.readouterr().out
    written = json.loads(file.read_text())
    assert written["machine"]["threads"] == threads
    assert [row["setting"] for row in written["rows"]] == [f"iqn atari batch {n}" for n in (1, 8, 64)]
    for row in written["rows"]:
        assert row["bench"] == "act"
        assert row["setting"] in shown
        assert 0 < row["best_ms"] <= row["median_ms"]
        assert 0 < row["bound_ms"] < math.inf
        assert 0 < row["ratio"] < math.inf  # how fast depends on what else the machine does


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["lerner"], "bench takes learner, act, replay, end-to-end"),
        (["--seconds", "nan"], "seconds takes a number"),
        (["--seconds", "-1"], "seconds takes a number"),
        (["--threads", "two"], "threads takes a whole number"),
        (["--threads", "1.5"], "threads takes a whole number"),
        (["--threads", "1000000"], "threads takes a whole number from 0 to 1024"),
        (["--json", "nowhere/bench.json"], "json takes a file"),
        (["--json", "."], "json takes a file"),
    ],
)
def test_invalid_input_is_refused_in_one_sentence_before_anything_is_measured(words, expected, capsys):
    assert command("bench", *words) == 2
    message = capsys.readouterr().err
    assert expected in message
    assert message.count("\n") == 1
