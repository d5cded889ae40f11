import numpy as np
import pytest

from quantail.errors import QuantailError
from quantail.evaluation.intervals import (
    aggregate_intervals,
    improvement_interval,
    mean_intervals,
    performance_profiles,
)
from quantail.evaluation.scores import AGGREGATES, probability_of_improvement

pytest.importorskip("rliable")
SCORES = np.random.default_rng(0).normal(1.0, 0.5, size=(5, 12))  # [seeds, games]


def test_an_interval_contains_its_aggregate_and_is_reproducible():
    first, again = aggregate_intervals(SCORES), aggregate_intervals(SCORES)
    assert first == again
    for name, aggregate in AGGREGATES.items():
        low, high = first[name]
        assert low < aggregate(SCORES) < high, name


def test_computing_an_interval_leaves_numpys_global_generator_unchanged():
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    aggregate_intervals(SCORES)
    assert np.random.random() == expected


def test_seeds_are_resampled_within_a_game_and_games_are_not():
    # Games differ and seeds do not: resampling games would give a wide interval.
    scores = np.tile(np.arange(12.0), (4, 1))
    low, high = aggregate_intervals(scores)["mean"]
    assert low == high == 5.5


def test_the_interval_of_a_mean_is_close_to_that_of_a_normal_distribution():
    many = np.random.default_rng(1).normal(3.0, 2.0, size=(200, 3))
    low, high = mean_intervals(many)
    half = 1.96 * many.std(axis=0, ddof=1) / np.sqrt(200)
    assert low == pytest.approx(many.mean(axis=0) - half, abs=0.06)
    assert high == pytest.approx(many.mean(axis=0) + half, abs=0.06)


def test_one_seed_has_no_interval_and_raises_an_error():
    with pytest.raises(QuantailError, match="two or more"):
        aggregate_intervals(SCORES[:1])


def test_a_performance_profile_is_the_share_of_runs_above_each_threshold():
    taus = np.array([0.0, 0.9, 1.5])
    profiles = performance_profiles({"many": SCORES, "one": SCORES[:1]}, taus)
    for name, matrix in (("many", SCORES), ("one", SCORES[:1])):
        assert profiles[name][0] == pytest.approx([(matrix > tau).mean() for tau in taus])
    same = {"one": np.array([[0.5, 1.0]]), "two": np.array([[0.5, 1.0]] * 2)}
    for share, _ in performance_profiles(same, np.array([0.5, 1.0])).values():
        assert share == pytest.approx([0.5, 0.0])  # a score at the threshold is not above it
    low, high = profiles["many"][1]
    assert (low <= profiles["many"][0]).all()
    assert (profiles["many"][0] <= high).all()
    assert profiles["one"][1] is None


def test_the_probability_of_improvement_is_that_of_rliable_and_of_counting_pairs():
    from rliable import metrics

    generator = np.random.default_rng(2)
    x = generator.integers(0, 6, size=(5, 4)).astype(float)
    y = generator.integers(0, 6, size=(3, 4)).astype(float)
    wins = [
        np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a in x[:, game] for b in y[:, game]])
        for game in range(4)
    ]
    assert probability_of_improvement(x, y) == pytest.approx(np.mean(wins))
    assert probability_of_improvement(x, y) == pytest.approx(metrics.probability_of_improvement(x, y))
    low, high = improvement_interval(x, y)
    assert low < probability_of_improvement(x, y) < high
    assert improvement_interval(x + 10, y) == (1.0, 1.0)
    with pytest.raises(QuantailError, match="two or more"):
        improvement_interval(x, y[:1])
