"""Every benchmark still runs, with its smallest setting, and measures what it says."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from quantail.evaluation.starts import read_recording

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def script(name):
    return runpy.run_path(str(BENCHMARKS / f"{name}.py"))


def test_more_fractions_in_strata_vary_less_than_few_independent_ones(cartpoles, capsys):
    benchmark = script("tau_sampling")
    counts = ((32, 32, 8), (4, 4, 8))
    benchmark["measure"].__globals__.update(COUNTS=counts, BATCHES=1, TIMED=1, WARM_UP=0)
    benchmark["main"]([str(cartpoles / "iqn-0"), "24"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == ["32/32/8", "4/4/8"]
    columns = dict(zip(benchmark["SCHEMES"], np.array(rows)[:, 2:].astype(float).T, strict=True))
    many, few = columns["independent"]
    assert many < few / 3  # an eighth in theory
    assert columns["stratified"][0] < many
    with pytest.raises(SystemExit):
        benchmark["main"]([str(cartpoles / "dqn-0"), "2"])
    assert "an agent that samples τ" in capsys.readouterr().err


def test_a_world_gets_a_row_of_errors(tmp_path, capsys):
    words = ["--worlds", "RiskyBandit", "--agents", "iqn", "--seeds", "0", "--out", str(tmp_path)]
    script("worlds")["main"]([*words, "--set", "steps=300", "learning_starts=200"])
    title, _, row = capsys.readouterr().out.splitlines()
    assert len(row.split("|")) == len(title.split("|"))
    assert row.startswith("| RiskyBandit | iqn | 0 |")


def test_the_shipped_starts_can_be_recorded_again(tmp_path):
    benchmark = script("scripted_starts")
    benchmark["play"].__globals__.update(GAMES=1, FRAMES=200)
    benchmark["main"](["--out", str(tmp_path)])
    shipped = read_recording(benchmark["BANK"] / "pong-scripted.jsonl").games[0]
    again = read_recording(tmp_path / "pong-scripted.jsonl").games[0]
    assert again.actions == shipped.actions[:200]
    assert again.marks[:3] == shipped.marks[:3]
