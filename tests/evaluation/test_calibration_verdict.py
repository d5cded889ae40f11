"""Simulated distributions: correct ones pass whatever their shape, and errors are named."""

import numpy as np
import pytest
from scipy import stats

from quantail.evaluation.calibration.continuations import sampling_noise
from quantail.evaluation.calibration.play import ATOMS, Rollout
from quantail.evaluation.calibration.ranks import (
    COVERAGE_TAUS,
    EVEN,
    bootstrap_ratios,
    crossing,
    distance_noise,
    rank,
    stratified_normal,
    tolerance,
)
from quantail.evaluation.calibration.run import build_calibration
from quantail.evaluation.calibration.verdict import tails
from quantail.evaluation.intervals import interval
from quantail.risk import Neutral
from quantail.viewing.calibration import calibration_figure

TAUS = (np.arange(ATOMS) + 0.5) / ATOMS
NORMAL = stats.norm.ppf(TAUS)
DISCRETE = np.repeat([-3.0, 0.0, 1.0], [20, 100, 80])
MIXED = np.sort(np.concatenate([np.zeros(100), stats.norm.ppf((np.arange(100) + 0.5) / 100)]))
CONSTANT = np.ones(ATOMS)
SHAPES = {"smooth": NORMAL, "discrete": DISCRETE, "mixed": MIXED, "constant": CONSTANT}


def normal(generator, count):
    return generator.standard_normal(count)


def sample_from(distribution):
    return lambda generator, count: generator.choice(distribution, count)


def found(distribution, draw, episodes=400, seed=0, steps=3, between=5.0):
    """Calibrate returns from `draw` against `distribution`; each step is shifted by its own offset."""
    generator = np.random.default_rng(seed)
    rollouts = []
    for episode in range(episodes):
        offsets = between * generator.standard_normal(steps)
        distributions = offsets[:, None] + distribution
        rollouts.append(Rollout(episode, 0, (), (), distributions, offsets + draw(generator, steps)))
    return build_calibration("X-v0", Neutral(), rollouts, seed=seed)


@pytest.mark.parametrize("shape", SHAPES)
def test_ranks_of_a_correct_distribution_are_uniform_whatever_its_shape(shape):
    draw = normal if shape == "smooth" else sample_from(SHAPES[shape])
    ranks = np.concatenate(found(SHAPES[shape], draw, episodes=1_000).ranks)
    assert stats.kstest(ranks, "uniform").pvalue > 0.01


@pytest.mark.parametrize("shape", SHAPES)
def test_a_correct_distribution_is_rarely_called_wrong(shape):
    draw = normal if shape == "smooth" else sample_from(SHAPES[shape])
    kinds = [found(SHAPES[shape], draw, 60, seed).judgement().kind for seed in range(30)]
    assert kinds.count("wrong") <= 1  # about one or two in a hundred
    assert kinds.count("true") >= 28


@pytest.mark.parametrize(
    ("distribution", "said"),
    [
        (NORMAL + 1, "too high"),
        (NORMAL - 1, "too low"),
        (0.4 * NORMAL, "too narrow"),
        (2.5 * NORMAL, "too wide"),
    ],
)
def test_the_verdict_names_the_error_however_much_states_differ(distribution, said):
    for between in (0.0, 5.0):
        one = found(distribution, normal, between=between)
        assert said in one.verdict()
        assert one.judgement().kind == "wrong"
        assert one.distance > 2 * one.tolerance


def test_rare_catastrophes_that_the_distribution_lacks_are_reported():
    def with_catastrophe(generator, count):
        return np.where(generator.random(count) < 0.04, -8.0, generator.standard_normal(count))

    one = found(NORMAL, with_catastrophe)
    assert one.judgement().kind == "wrong"
    assert "the worst returns are worse than predicted" in one.verdict()
    assert one.worst.predicted == pytest.approx(-2.06, abs=0.05)
    assert one.worst.measured == pytest.approx(-6.7, abs=0.5)
    other = found(NORMAL, lambda generator, count: -with_catastrophe(generator, count))
    assert "the best returns are better than predicted" in other.verdict()
    assert "worst" not in other.verdict()


def test_a_slightly_smeared_distribution_is_close_and_a_heavily_smeared_one_too_wide():
    """Networks smear discrete returns in this way."""
    generator = np.random.default_rng(1)
    distribution = np.repeat([-5.0, 2.0], [20, 180])
    slight, heavy = (
        np.sort(distribution + width * generator.standard_normal(ATOMS)) for width in (0.15, 2.0)
    )
    close = found(slight, sample_from(distribution), steps=1)
    assert close.judgement().kind in ("true", "close")
    assert (
        found(heavy, sample_from(distribution), steps=1).verdict()
        == "predicted distributions are too wide"
    )
    constant = found(1 + 0.003 + 0.01 * NORMAL, sample_from(CONSTANT), between=0.0)
    assert constant.judgement().kind in ("true", "close")
    assert found(CONSTANT + 0.2, sample_from(CONSTANT), between=0.0).judgement().kind == "wrong"


def test_too_few_episodes_give_no_verdict():
    few = found(NORMAL + 3, normal, episodes=29)
    assert few.judgement().kind == "unknown"
    assert "too few episodes for a verdict: 29" in few.verdict()
    assert "too high" in found(NORMAL + 3, normal, episodes=30).verdict()


def test_the_tolerance_is_a_tenth_of_the_deviation_or_a_fiftieth_of_the_returns():
    generator = np.random.default_rng(0)
    means = 100 * generator.standard_normal(4_000)  # states differ much more than returns of one state
    small = tolerance(means, means + 30 * generator.standard_normal(4_000))
    assert small == pytest.approx(3.0, rel=0.05)
    assert tolerance(np.full(9, 5.0), np.full(9, 5.0)) == pytest.approx(0.1)


def test_smoothing_hides_only_smaller_differences():
    generator = np.random.default_rng(0)
    distributions, returns = np.tile(NORMAL, (4_000, 1)), np.full(4_000, 0.0)
    for width, uniform in ((10.0, True), (0.1, False)):
        ranks = rank(distributions, returns, width, stratified_normal(4_000, generator))
        assert (stats.kstest(ranks, "uniform").statistic < 0.05) == uniform


def test_the_noise_is_normal_and_not_autocorrelated():
    noise = stratified_normal(2_000, np.random.default_rng(0))
    assert stats.kstest(noise, "norm").statistic < 1 / 2_000 + 1e-9
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 0.06


def test_a_return_outside_its_distribution_has_an_extreme_rank():
    low, high = rank(np.tile(TAUS, (2, 1)), np.array([-5.0, 5.0]), 0.1, np.zeros(2))
    assert low < 1e-6
    assert high > 1 - 1e-6


def test_a_tail_is_the_mean_of_the_five_percent_beyond_it():
    worst, best = tails(NORMAL, 2 * NORMAL[::-1] + 1)
    expected = stats.norm.expect(ub=stats.norm.ppf(0.05), conditional=True)
    assert (worst.predicted, best.predicted) == pytest.approx((expected, -expected), abs=0.01)
    assert worst.measured == pytest.approx(1 + 2 * expected, abs=0.02)
    assert best.measured == pytest.approx(1 - 2 * expected, abs=0.02)


def test_episodes_are_weighted_by_their_steps():
    counts = np.array([1, 50, 3, 200])
    low, high = interval(bootstrap_ratios(0.25 * counts[:, None], counts))
    assert low[0] == pytest.approx(0.25)
    assert high[0] == pytest.approx(0.25)
    # Of two episodes, only the long one has its steps below: the share is 99 %, not 50 %.
    shares = bootstrap_ratios(np.array([[0.0], [99.0]]), np.array([1, 99]))
    assert np.median(shares) == pytest.approx(0.99)


def test_the_distance_noise_agrees_with_repeated_samples():
    generator = np.random.default_rng(0)
    noise = distance_noise(generator.standard_normal(200), np.arange(200))
    distances = [
        stats.wasserstein_distance(generator.standard_normal(200), stats.norm.ppf(TAUS))
        for _ in range(300)
    ]
    assert noise == pytest.approx(np.quantile(distances, 0.95), rel=0.2)
    # Steps of one episode are correlated, so fewer episodes have more noise.
    shared = distance_noise(generator.standard_normal(20).repeat(10), np.arange(20).repeat(10))
    assert shared > 2 * noise


def test_the_sampling_noise_is_that_of_a_coin():
    """For atoms 0 and 1 the distance is |share − ½|: mean √(2/π) σ and 95 % quantile 1.96 σ."""
    distribution = np.repeat([0.0, 1.0], 100)
    mean, high = sampling_noise(distribution, 100, np.random.default_rng(0))
    assert mean == pytest.approx(0.05 * np.sqrt(2 / np.pi), rel=0.2)
    assert high == pytest.approx(0.05 * 1.96, rel=0.25)


def test_crossing_is_zero_for_increasing_and_maximal_for_decreasing_quantiles():
    increasing, decreasing = crossing(NORMAL[None])[0], crossing(NORMAL[None, ::-1])[0]
    assert increasing[0] == 0
    assert decreasing[0] == decreasing[1] == increasing[1] > 1
    jitter = NORMAL + 0.001 * np.random.default_rng(0).standard_normal(ATOMS)
    distance, most = crossing(np.repeat(jitter.round(1), 1)[None])[0]
    assert distance / most < 0.01


def test_the_histogram_contains_all_ranks():
    one = found(NORMAL - 1, normal)
    shares = one.histogram()
    ranks = np.concatenate(one.ranks)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] == pytest.approx((ranks < 0.05).mean(), abs=0.002)
    assert shares[-1] == pytest.approx((ranks >= 0.95).mean(), abs=0.002)
    assert shares[-1] > 4 / 20


def lines(axes):
    return [np.asarray(line.get_xydata()) for line in axes.get_lines()]


def test_the_figure_draws_the_coverage_and_its_colour_shows_the_verdict():
    good, bad = found(NORMAL, normal), found(NORMAL - 1, normal)
    figures = [calibration_figure(one) for one in (good, bad)]
    for one, figure in zip((good, bad), figures, strict=True):
        drawn = next(line for line in lines(figure.axes[0]) if len(line) == len(COVERAGE_TAUS))
        assert np.allclose(drawn[:, 1], one.coverage)
        assert one.verdict() in figure.get_suptitle()
    assert np.abs(bad.coverage - COVERAGE_TAUS)[EVEN].max() > 0.2
    colours = [figure.axes[0].get_lines()[-1].get_color() for figure in figures]
    assert colours[0] != colours[1]


def test_a_small_error_of_a_constant_return_looks_small():
    axes = calibration_figure(found(1.003 * CONSTANT, sample_from(CONSTANT), between=0.0)).axes[2]
    low, high = axes.get_xlim()
    assert high - low > 30 * 0.003


def test_the_json_holds_all_figures():
    content = found(NORMAL, normal).to_dict()
    assert content["schema"] == 1
    assert content["verdict"]["kind"] == "true"
    assert len(content["taus"]) == len(content["coverage"]) == len(COVERAGE_TAUS)
    assert content["crossing"] is None
