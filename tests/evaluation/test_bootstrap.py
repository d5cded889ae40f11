import numpy as np
import pytest
from scipy import stats

from quantail.evaluation.intervals import bootstrap, interval

RETURNS = np.random.default_rng(0).normal(3.0, 2.0, size=50)


def resampled_mean(counts):
    return counts @ RETURNS / len(RETURNS)


def test_every_repeat_draws_as_many_episodes_as_there_are():
    counts = bootstrap(7, lambda block: block, repeats=5_000)
    assert counts.shape == (5_000, 7)
    assert (counts.sum(axis=1) == 7).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(7), abs=0.05)
    assert counts.var(axis=0) == pytest.approx(np.full(7, 6 / 7), rel=0.1)  # binomial


def test_the_block_size_does_not_change_a_single_draw(monkeypatch):
    whole = bootstrap(50, resampled_mean)
    monkeypatch.setattr("quantail.evaluation.intervals.BLOCK_NUMBERS", 700)
    assert np.array_equal(bootstrap(50, lambda block: block), np.concatenate(_one_by_one(50)))
    assert bootstrap(50, resampled_mean) == pytest.approx(whole)


def _one_by_one(episodes):
    """The draws as numpy makes them row by row, with the seed that intervals are published with."""
    generator = np.random.default_rng(0)
    return [generator.multinomial(episodes, [1 / episodes] * episodes, size=1) for _ in range(2_000)]


def test_the_interval_agrees_with_scipys_bootstrap():
    low, high = interval(bootstrap(len(RETURNS), resampled_mean))
    theirs = stats.bootstrap(
        (RETURNS,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(1)
    ).confidence_interval
    assert (low, high) == pytest.approx(theirs, abs=0.05)


def test_each_column_of_a_statistic_has_its_own_interval():
    low, high = interval(np.stack([np.arange(1_001.0), np.arange(1_001.0) * 10], axis=1))
    assert low == pytest.approx([25, 250])
    assert high == pytest.approx([975, 9750])
