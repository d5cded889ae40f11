import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from quantail.errors import QuantailError
from quantail.risk import CPW, MEASURES, Custom, CVaR, Neutral, Norm, Pow, Wang, parse_risk
from quantail.taus import midpoints

EXAMPLES = [Neutral(), CPW(0.71), CPW(5.0), Wang(-0.75), Wang(1.5), Pow(-2), Pow(3), CVaR(0.1), Norm(3)]


def value(quantile, risk, points=100_000):
    """Q_β of the distribution with this quantile function, by midpoints in float64."""
    return float(quantile(risk(midpoints(points, torch.float64))).mean())


def normal(mu, sigma):
    return lambda tau: mu + sigma * torch.special.ndtri(tau)


@pytest.mark.parametrize("eta", [-2.0, -0.75, 0.0, 0.75, 1.5])
def test_wang_of_a_normal_law_is_mean_plus_eta_deviations(eta):
    assert value(normal(3.0, 2.0), Wang(eta), 2_000_000) == pytest.approx(3.0 + eta * 2.0, abs=2e-4)


@pytest.mark.parametrize("eta", [0.05, 0.1, 0.25, 0.9, 1.0])
def test_cvar_of_a_normal_law_is_its_closed_form(eta):
    expected = 3.0 - 2.0 * stats.norm.pdf(stats.norm.ppf(eta)) / eta
    assert value(normal(3.0, 2.0), CVaR(eta), 1_000_000) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("eta", [0.01, 0.25, 1.0])
def test_cvar_of_a_uniform_law_is_half_of_eta(eta):
    assert value(lambda tau: tau, CVaR(eta)) == pytest.approx(eta / 2)


@pytest.mark.parametrize("eta", [0.5, 1.0, 2.0, 7.0])
def test_pow_branches_mirror_each_other_and_the_negative_one_is_averse(eta):
    tau = torch.linspace(0, 1, 1001, dtype=torch.float64)
    torch.testing.assert_close(Pow(-eta)(tau), 1 - Pow(eta)(1 - tau))
    inner = tau[1:-1]
    assert (Pow(-eta)(inner) < inner).all()
    assert (Pow(eta)(inner) > inner).all()
    # E[τ^(1/(1+η))] for uniform τ.
    assert value(lambda t: t, Pow(eta)) == pytest.approx((1 + eta) / (2 + eta), abs=1e-6)


def test_cpw_is_the_formula_of_the_paper_and_crosses_the_diagonal():
    tau = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    eta = 0.71
    expected = tau**eta / (tau**eta + (1 - tau) ** eta) ** (1 / eta)
    torch.testing.assert_close(CPW(eta)(tau), expected)
    assert CPW(eta)(0.05) > 0.05
    assert CPW(eta)(0.9) < 0.9
    torch.testing.assert_close(CPW(1.0)(tau), tau)


def test_cpw_is_monotone_from_where_it_is_allowed_and_not_below():
    tau = torch.linspace(0, 1, 100_001, dtype=torch.float64)
    assert (CPW(0.28)(tau).diff() >= 0).all()
    below = tau**0.27 / (tau**0.27 + (1 - tau) ** 0.27) ** (1 / 0.27)
    assert (below.diff() < 0).any()


def test_norm_one_is_neutral_and_norm_two_is_the_triangular_law():
    tau = torch.linspace(0, 1, 1001, dtype=torch.float64)
    torch.testing.assert_close(Norm(1)(tau), tau)
    triangular = torch.from_numpy(stats.triang(0.5).ppf(tau.numpy()))
    torch.testing.assert_close(Norm(2)(tau), triangular)


@pytest.mark.parametrize("eta", [3, 5, 12, 30])
def test_norm_is_the_quantile_function_of_a_mean_of_uniforms(eta):
    draws = np.random.default_rng(0).random((400_000, eta)).mean(axis=1)
    levels = np.array([0.01, 0.1, 0.3, 0.5, 0.8, 0.99])
    np.testing.assert_allclose(Norm(eta)(levels), np.quantile(draws, levels), atol=2e-3)


LIMITS = [CPW(0.28), CPW(1000), Wang(-100), Wang(100), Pow(-1000), Pow(1000), CVaR(1e-6), Norm(30)]


@pytest.mark.parametrize("measure", LIMITS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_measures_and_their_inverses_are_numbers_from_0_to_1_at_the_limits_of_eta(measure, dtype):
    tiny, eps = torch.finfo(dtype).tiny, torch.finfo(dtype).eps
    tau = torch.tensor([0.0, tiny, 1e-6, 0.3, 0.5, 0.9, 1 - eps, 1.0], dtype=dtype)
    for answer in (measure(tau), measure.inverse(tau)):
        assert ((answer >= 0) & (answer <= 1)).all(), answer
        assert (answer.diff() >= 0).all(), answer


@pytest.mark.parametrize("eta", [1.2, 1.9, 2.1, 2.5, 2.7, 5.0])
def test_cpw_above_one_raises_both_tails_only_below_two_and_is_averse_above_2_61(eta):
    u = torch.tensor([1e-4, 1 - 1e-6], dtype=torch.float64).requires_grad_()
    density = torch.autograd.grad(CPW(eta).inverse(u).sum(), u)[0]  # weight of the quantile at u
    assert density[0] > 1
    assert (density[1] > 1) == (eta < 2)
    tau = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    convex = bool((CPW(eta)(tau).diff().diff() > -1e-12).all())
    assert convex == (eta > 2.61)


@pytest.mark.parametrize("measure", EXAMPLES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_measures_are_finite_monotone_and_exact_at_both_ends(measure, dtype):
    tiny = torch.finfo(dtype).tiny
    near = 1 - torch.finfo(dtype).eps
    tau = torch.cat(
        [torch.tensor([0.0, tiny], dtype=dtype), torch.linspace(1e-6, near, 5001, dtype=dtype)]
    )
    beta = measure(torch.cat([tau, torch.ones(1, dtype=dtype)]))
    assert beta.dtype == dtype
    assert beta.isfinite().all()
    assert beta[0] == 0
    assert beta[-1] == pytest.approx(measure.eta if isinstance(measure, CVaR) else 1.0)
    assert ((beta >= 0) & (beta <= 1)).all()
    assert (beta.diff() >= -4 * torch.finfo(dtype).eps).all()


def test_averse_pow_keeps_its_digits_near_zero():
    # 1 − (1 − τ)^(1/3) is τ/3 there; written naively it is 0 or off by half.
    assert Pow(-2)(1e-17) == pytest.approx(1e-17 / 3, rel=1e-12)
    assert float(Pow(-2)(torch.tensor(1e-9))) == pytest.approx(1e-9 / 3, rel=1e-5)


def test_cpw_with_a_large_parameter_does_not_underflow():
    assert CPW(400.0)(torch.tensor([0.25, 0.5])).isfinite().all()


@pytest.mark.parametrize("averse", [Wang(-0.75), Pow(-2), CVaR(0.25)], ids=str)
def test_averse_measures_value_a_spread_law_below_its_mean(averse):
    assert value(normal(0.0, 1.0), averse) < -0.3


@pytest.mark.parametrize("seeking", [Wang(0.75), Pow(2)], ids=str)
def test_seeking_measures_value_a_spread_law_above_its_mean(seeking):
    assert value(normal(0.0, 1.0), seeking) > 0.3


@pytest.mark.parametrize("measure", EXAMPLES, ids=str)
def test_text_form_reads_back_as_the_same_measure(measure):
    assert parse_risk(str(CVaR(1 / 3))) == CVaR(1 / 3)
    assert parse_risk(str(measure)) == measure


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cvar:0", "from 1e-6 to 1"),
        ("cvar:1.5", "from 1e-6 to 1"),
        ("cvar:1e-300", "from 1e-6 to 1"),
        ("cpw:0.2", "from 0.28"),
        ("cpw:1e39", "to 1000"),
        ("wang:1e308", "from -100 to 100"),
        ("pow:-1e308", "from -1000 to 1000"),
        ("norm:2.5", "whole number from 1 to 30"),
        ("norm:0", "whole number from 1 to 30"),
        ("wang:inf", "from -100 to 100"),
        ("pow:nan", "from -1000 to 1000"),
        ("cvar", "from 1e-6 to 1"),
        ("neutral:3", "takes no number"),
        ("cvarr:0.1", "Did you mean 'cvar'"),
        ("nowhere.risks:beta", "cannot be imported"),
        (":beta", "cannot be imported"),
        (0.1, "or a map of τ"),
    ],
)
def test_a_wrong_risk_is_refused_with_what_it_takes(text, says):
    with pytest.raises(QuantailError, match=says):
        parse_risk(text)


def test_every_callable_is_a_measure_and_an_importable_one_has_a_text_form():
    squared = parse_risk(lambda tau: tau**2)
    assert squared(0.5) == pytest.approx(0.25)
    again = parse_risk(f"{__name__}:own_measure")
    assert isinstance(again, Custom)
    assert str(parse_risk(own_measure)) == str(again)


def own_measure(tau):
    return 0.5 * tau


@pytest.mark.parametrize(
    "wrong", [lambda t: 2 * t, lambda t: 1 - t, lambda t: t.mean(), lambda t: t @ t @ t]
)
def test_a_callable_that_is_no_distortion_is_refused(wrong):
    with pytest.raises(QuantailError, match="risk"):
        parse_risk(wrong)


@given(st.floats(0, 1), st.sampled_from(["cpw", "wang", "pow", "cvar", "norm"]))
def test_numbers_arrays_and_tensors_get_the_same_answer(tau, name):
    measure = MEASURES[name](1)
    answer = measure(tau)
    assert isinstance(answer, float)
    assert math.isclose(measure(np.array([tau]))[0], answer, abs_tol=1e-15)
    assert math.isclose(measure(torch.tensor(tau, dtype=torch.float64)).item(), answer, abs_tol=1e-15)


@pytest.mark.parametrize("risk", [*EXAMPLES, Norm(7), Custom(lambda tau: tau**2)], ids=str)
def test_the_inverse_is_the_share_of_levels_that_the_map_takes_below(risk):
    levels = torch.linspace(0, 1, 41, dtype=torch.float64)
    mapped = risk(midpoints(200_000, torch.float64))
    shares = torch.stack([(mapped <= level).double().mean() for level in levels])
    torch.testing.assert_close(risk.inverse(levels), shares, rtol=0, atol=2e-5)
    assert float(risk.inverse(levels)[-1]) == 1
    assert float(risk.inverse(torch.ones(1))) == 1


def test_the_inverse_of_a_map_with_a_jump_and_a_flat_part_is_the_share_below_all_the_same():
    risk = Custom(lambda tau: torch.where(tau < 0.3, 0.2 * torch.ones_like(tau), 0.5 + tau / 2))
    levels = torch.tensor([0.1, 0.2, 0.4, 0.8, 1.0], dtype=torch.float64)
    expected = torch.tensor([0.0, 0.3, 0.3, 0.6, 1.0], dtype=torch.float64)
    torch.testing.assert_close(risk.inverse(levels), expected, rtol=0, atol=1e-8)
