"""Slow checks that the default settings learn. `make test-slow` runs them and prints the scores."""

import pytest

import quantail


@pytest.mark.slow
def test_cartpole_is_solved_within_fifty_thousand_steps_for_four_of_five_seeds(tmp_path):
    scores = []
    for seed in range(5):
        quantail.train("CartPole-v1", steps=50_000, seed=seed, out=tmp_path / str(seed))
        agent = quantail.load(tmp_path / str(seed))
        scores.append(quantail.evaluate(agent, episodes=100, seed=1000 + seed).mean)
        print(f"CartPole-v1, seed {seed}: mean return of the best checkpoint {scores[-1]:.1f}")
    assert sum(score >= 450 for score in scores) >= 4


@pytest.mark.slow
def test_minatar_breakout_reaches_six_within_the_default_run(tmp_path):
    quantail.train("MinAtar/Breakout-v1", seed=0, out=tmp_path / "run")
    score = quantail.evaluate(quantail.load(tmp_path / "run"), episodes=100, seed=1000).mean
    print(f"MinAtar/Breakout-v1, seed 0: mean return of the best checkpoint {score:.2f}")
    assert score >= 6
