"""Simulated laws: true ones are found true whatever their shape, false ones are called what they are."""

import numpy as np
import pytest
from scipy import stats

from quantail.evaluation.calibration.continuations import noise_of_draws
from quantail.evaluation.calibration.play import ATOMS, Trail
from quantail.evaluation.calibration.ranks import (
    EVEN,
    LEVELS,
    chance_distance,
    disorder,
    even_noise,
    grain,
    interval,
    rank,
    redrawn,
)
from quantail.evaluation.calibration.run import compared
from quantail.risk import Neutral
from quantail.viewing.calibration import calibration_figure

TAUS = (np.arange(ATOMS) + 0.5) / ATOMS
NORMAL = stats.norm.ppf(TAUS)
DISCRETE = np.repeat([-3.0, 0.0, 1.0], [20, 100, 80])
MIXED = np.sort(np.concatenate([np.zeros(100), stats.norm.ppf((np.arange(100) + 0.5) / 100)]))
SURE = np.ones(ATOMS)
TRUE = {"smooth": NORMAL, "discrete": DISCRETE, "mixed": MIXED, "sure": SURE}


def normal(generator, count):
    return generator.standard_normal(count)


def drawn_from(law):
    return lambda generator, count: generator.choice(law, count)


def found(law, draw, episodes=400, seed=0, steps=3, between=5.0):
    """One law about a level that is each step's own, and what comes of `draw` about it."""
    generator = np.random.default_rng(seed)
    trails = []
    for episode in range(episodes):
        levels = between * generator.standard_normal(steps)
        laws = levels[:, None] + law
        trails.append(Trail(episode, 0, (), (), laws, levels + draw(generator, steps)))
    return compared("X-v0", Neutral(), trails, seed=seed)


@pytest.mark.parametrize("shape", TRUE)
def test_ranks_of_a_true_law_are_uniform_whatever_its_shape(shape):
    draw = normal if shape == "smooth" else drawn_from(TRUE[shape])
    ranks = np.concatenate(found(TRUE[shape], draw, episodes=1_000).ranks)
    assert stats.kstest(ranks, "uniform").pvalue > 0.01


@pytest.mark.parametrize("shape", TRUE)
def test_a_true_law_is_seldom_called_wrong(shape):
    draw = normal if shape == "smooth" else drawn_from(TRUE[shape])
    kinds = [found(TRUE[shape], draw, 60, seed).judgement().kind for seed in range(30)]
    assert kinds.count("wrong") <= 1  # of a hundred, one or two
    assert kinds.count("true") >= 28


@pytest.mark.parametrize(
    ("law", "said"),
    [
        (NORMAL + 1, "too high"),
        (NORMAL - 1, "too low"),
        (0.4 * NORMAL, "too narrow"),
        (2.5 * NORMAL, "too wide"),
    ],
)
def test_a_false_law_is_called_what_it_is_however_much_states_differ(law, said):
    for between in (0.0, 5.0):
        one = found(law, normal, between=between)
        assert said in one.verdict()
        assert one.judgement().kind == "wrong"
        assert one.distance > 2 * one.grain


def test_a_catastrophe_that_the_law_lacks_is_told():
    def with_catastrophe(generator, count):
        return np.where(generator.random(count) < 0.04, -8.0, generator.standard_normal(count))

    one = found(NORMAL, with_catastrophe)
    assert one.judgement().kind == "wrong"
    assert "the worst returns are worse than predicted" in one.verdict()
    assert one.worst.predicted == pytest.approx(-2.06, abs=0.05)
    assert one.worst.came == pytest.approx(-6.7, abs=0.5)
    other = found(NORMAL, lambda generator, count: -with_catastrophe(generator, count))
    assert "the best returns are better than predicted" in other.verdict()
    assert "worst" not in other.verdict()


def test_a_law_smeared_by_a_little_is_close_and_by_much_is_too_wide():
    """As networks do with atoms."""
    generator = np.random.default_rng(1)
    law = np.repeat([-5.0, 2.0], [20, 180])
    little, much = (np.sort(law + width * generator.standard_normal(ATOMS)) for width in (0.15, 2.0))
    close = found(little, drawn_from(law), steps=1)
    assert close.judgement().kind in ("true", "close")
    assert found(much, drawn_from(law), steps=1).verdict() == "predicted laws are too wide"
    sure = found(1 + 0.003 + 0.01 * NORMAL, drawn_from(SURE), between=0.0)
    assert sure.judgement().kind in ("true", "close")
    assert found(SURE + 0.2, drawn_from(SURE), between=0.0).judgement().kind == "wrong"


def test_few_episodes_tell_nothing():
    few = found(NORMAL + 3, normal, episodes=29)
    assert few.judgement().kind == "unknown"
    assert "too few episodes to tell: 29" in few.verdict()
    assert "too high" in found(NORMAL + 3, normal, episodes=30).verdict()


def test_the_smoothing_is_a_tenth_of_the_surprises_or_a_fiftieth_of_the_returns():
    generator = np.random.default_rng(0)
    levels = 100 * generator.standard_normal(4_000)  # states differ much more than luck does
    small = grain(levels, levels + 30 * generator.standard_normal(4_000))
    assert small == pytest.approx(3.0, rel=0.05)
    assert grain(np.full(9, 5.0), np.full(9, 5.0)) == pytest.approx(0.1)


def test_smoothing_hides_what_is_smaller_and_nothing_that_is_larger():
    generator = np.random.default_rng(0)
    laws, returns = np.tile(NORMAL, (4_000, 1)), np.full(4_000, 0.0)
    for width, uniform in ((10.0, True), (0.1, False)):
        ranks = rank(laws, returns, width, even_noise(4_000, generator))
        assert (stats.kstest(ranks, "uniform").statistic < 0.05) == uniform


def test_the_noise_is_normal_and_the_same_numbers_do_not_follow_each_other():
    noise = even_noise(2_000, np.random.default_rng(0))
    assert stats.kstest(noise, "norm").statistic < 1 / 2_000 + 1e-9
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 0.06


def test_a_return_outside_its_law_has_an_extreme_rank():
    low, high = rank(np.tile(TAUS, (2, 1)), np.array([-5.0, 5.0]), 0.1, np.zeros(2))
    assert low < 1e-6
    assert high > 1 - 1e-6


def test_long_and_short_episodes_count_by_their_steps():
    counts = np.array([1, 50, 3, 200])
    low, high = interval(redrawn(0.25 * counts[:, None], counts))
    assert low[0] == pytest.approx(0.25)
    assert high[0] == pytest.approx(0.25)
    # Two episodes of which the long one has all of its steps below: the share is 99 %, not a half.
    shares = redrawn(np.array([[0.0], [99.0]]), np.array([1, 99]))
    assert np.median(shares) == pytest.approx(0.99)


def test_a_bootstrap_of_many_episodes_is_the_same_in_parts(monkeypatch):
    sums = np.random.default_rng(0).random((50, 2))
    whole = redrawn(sums, np.ones(50, int))
    monkeypatch.setattr("quantail.evaluation.calibration.ranks.AT_ONCE", 700)
    assert np.allclose(redrawn(sums, np.ones(50, int)), whole)


def test_chance_is_as_large_as_repeated_samples_show():
    generator = np.random.default_rng(0)
    told = chance_distance(generator.standard_normal(200), np.arange(200))
    apart = [
        stats.wasserstein_distance(generator.standard_normal(200), stats.norm.ppf(TAUS))
        for _ in range(300)
    ]
    assert told == pytest.approx(np.quantile(apart, 0.95), rel=0.2)
    # Steps of one episode share their luck: with fewer episodes chance is larger.
    shared = chance_distance(generator.standard_normal(20).repeat(10), np.arange(20).repeat(10))
    assert shared > 2 * told


def test_the_noise_of_draws_is_that_of_a_coin():
    """For atoms 0 and 1 the distance is |share − ½|, of mean √(2/π) and 95 % point 1.96 deviations."""
    law = np.repeat([0.0, 1.0], 100)
    mean, high = noise_of_draws(law, 100, np.random.default_rng(0))
    assert mean == pytest.approx(0.05 * np.sqrt(2 / np.pi), rel=0.2)
    assert high == pytest.approx(0.05 * 1.96, rel=0.25)


def test_disorder_is_none_for_rising_and_whole_for_falling_quantiles():
    rising, falling = disorder(NORMAL[None])[0], disorder(NORMAL[None, ::-1])[0]
    assert rising[0] == 0
    assert falling[0] == falling[1] == rising[1] > 1
    jitter = NORMAL + 0.001 * np.random.default_rng(0).standard_normal(ATOMS)
    apart, most = disorder(np.repeat(jitter.round(1), 1)[None])[0]
    assert apart / most < 0.01


def test_the_histogram_shows_the_whole_of_the_ranks():
    one = found(NORMAL - 1, normal)
    shares = one.histogram()
    ranks = np.concatenate(one.ranks)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] == pytest.approx((ranks < 0.05).mean(), abs=0.002)
    assert shares[-1] == pytest.approx((ranks >= 0.95).mean(), abs=0.002)
    assert shares[-1] > 4 / 20


def lines(axes):
    return [np.asarray(line.get_xydata()) for line in axes.get_lines()]


def test_the_figure_draws_the_coverage_and_says_good_and_bad_in_colours():
    good, bad = found(NORMAL, normal), found(NORMAL - 1, normal)
    figures = [calibration_figure(one) for one in (good, bad)]
    for one, figure in zip((good, bad), figures, strict=True):
        drawn = next(line for line in lines(figure.axes[0]) if len(line) == len(LEVELS))
        assert np.allclose(drawn[:, 1], one.coverage)
        assert one.verdict() in figure.get_suptitle()
    assert np.abs(bad.coverage - LEVELS)[EVEN].max() > 0.2
    colours = [figure.axes[0].get_lines()[-1].get_color() for figure in figures]
    assert colours[0] != colours[1]


def test_a_small_error_of_a_sure_return_looks_small():
    axes = calibration_figure(found(1.003 * SURE, drawn_from(SURE), between=0.0)).axes[2]
    low, high = axes.get_xlim()
    assert high - low > 30 * 0.003


def test_everything_is_told_as_json_too():
    told = found(NORMAL, normal).to_dict()
    assert told["schema"] == 1
    assert told["verdict"]["kind"] == "true"
    assert len(told["levels"]) == len(told["coverage"]) == len(LEVELS)
    assert told["crossing"] is None
