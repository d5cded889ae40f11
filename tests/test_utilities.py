"""Risk measures that are not distortions, against closed forms."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError
from quantail.risk import (
    CVaR,
    Entropic,
    ExpUtility,
    MeanStd,
    Neutral,
    Prospect,
    RiskMeasure,
    parse_risk,
)
from quantail.taus import midpoints

NORMAL = ReturnDistribution(1.5 + 0.8 * torch.special.ndtri(midpoints(200_000, torch.float64)))
GAMBLE = ReturnDistribution.of([-4.0, 0.0, 9.0], [0.25, 0.25, 0.5])


@pytest.mark.parametrize("eta", [-1.0, -0.2, 0.0, 0.3, 2.0])
def test_mean_std_and_entropic_risk_of_a_normal_return_are_their_closed_forms(eta):
    assert float(MeanStd(eta).value(NORMAL)) == pytest.approx(1.5 - eta * 0.8, abs=1e-3)
    assert float(Entropic(eta).value(NORMAL)) == pytest.approx(1.5 - eta * 0.8**2 / 2, abs=2e-3)


@pytest.mark.parametrize("eta", [-0.5, 0.2, 1.0])
def test_entropic_risk_is_the_certainty_equivalent_of_exponential_utility(eta):
    by_hand = sum(p * (1 - math.exp(-eta * z)) / eta for z, p in ((-4.0, 0.25), (0.0, 0.25), (9.0, 0.5)))
    utility = float(ExpUtility(eta).value(GAMBLE))
    assert utility == pytest.approx(by_hand)
    sure = ReturnDistribution(Entropic(eta).value(GAMBLE).unsqueeze(-1))
    assert float(ExpUtility(eta).value(sure)) == pytest.approx(utility)


def test_entropic_risk_does_not_overflow_where_returns_are_large():
    z = ReturnDistribution.of([-800.0, 800.0])
    assert float(Entropic(5.0).value(z)) == pytest.approx(-800 + math.log(2) / 5)
    assert float(Entropic(-5.0).value(z)) == pytest.approx(800 - math.log(2) / 5)


@pytest.mark.parametrize("measure", [MeanStd(0.0), Entropic(0.0), ExpUtility(0.0)], ids=str)
def test_at_zero_these_measures_are_the_mean(measure):
    assert float(measure.value(GAMBLE)) == pytest.approx(float(GAMBLE.mean()))


def test_prospect_theory_values_gains_and_losses_about_the_reference_point():
    by_hand = 0.25 * -2.25 * 4**0.88 + 0.5 * 9**0.88
    assert float(Prospect().value(GAMBLE)) == pytest.approx(by_hand)
    shifted = 0.25 * -3.0 * 5**0.88 + 0.25 * -3.0 * 1**0.88 + 0.5 * 8**0.88
    assert float(Prospect(3.0, 1.0).value(GAMBLE)) == pytest.approx(shifted)
    even = ReturnDistribution.of([-1.0, 1.0])
    assert float(Prospect().value(even)) < 0 == float(Prospect(1.0).value(even))


def test_measures_act_on_every_action_of_a_batch():
    z = ReturnDistribution(torch.randn(5, 3, 8))
    for text in ("mean-std:0.5", "entropic:0.1", "exp-utility:0.1", "prospect:2.25,0"):
        measure = parse_risk(text)
        values = measure.value(z)
        assert values.shape == (5, 3)
        alone = measure.value(ReturnDistribution(z.atoms[2, 1]))
        torch.testing.assert_close(values[2, 1], alone)
        assert measure.tau_map is None
        assert parse_risk(str(measure)) == measure


def test_annealing_goes_on_a_line_from_the_neutral_value():
    assert MeanStd(2.0).annealed(0.25) == MeanStd(0.5)
    assert CVaR(0.2).annealed(0.5) == CVaR(0.6)
    assert CVaR(0.2).annealed(1.0) == CVaR(0.2)
    assert Neutral().annealed(0.5) == Neutral()
    assert Prospect().annealed(0.5) == Prospect()


def root(returns):
    return torch.where(returns < 0, 2 * returns, returns)


def falling(returns):
    return -returns


@dataclass(frozen=True)
class Midrange(RiskMeasure):
    """A measure of one's own: the middle between the smallest and the largest return."""

    name = "midrange"
    summary = "between the extremes"

    def value(self, z, context=None):
        return (z.atoms.amin(dim=-1) + z.atoms.amax(dim=-1)) / 2


CAREFUL = Entropic(0.5)
NOTHING = 3


def test_a_utility_of_ones_own_is_named_with_utility_before_it():
    measure = parse_risk(f"utility:{__name__}:root")
    assert str(measure) == f"utility:{__name__}:root"
    assert float(measure.value(GAMBLE)) == pytest.approx(0.25 * -8 + 0.5 * 9)
    assert measure.tau_map is None


def test_a_class_or_a_measure_from_outside_is_a_whole_measure():
    measure = parse_risk(f"{__name__}:Midrange")
    assert float(measure.value(GAMBLE)) == 2.5
    assert str(measure) == f"{__name__}:Midrange"
    made = parse_risk(f"{__name__}:CAREFUL")
    assert float(made.value(GAMBLE)) == pytest.approx(float(CAREFUL.value(GAMBLE)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mean-std", "from -100 to 100"),
        ("entropic:1e9", "from -100 to 100"),
        ("prospect:-1", "loss aversion from 0 to 1000"),
        ("prospect:1,2,3", "such as 2.25,0"),
        (f"utility:{__name__}:falling", "must not decrease"),
        (f"utility:{__name__}:missing", "cannot be imported"),
        (f"{__name__}:NOTHING", "not a function of τ or a risk measure"),
        ("entropy:1", "Did you mean 'entropic'"),
    ],
)
def test_a_wrong_measure_gets_one_sentence(text, says):
    with pytest.raises(QuantailError, match=says):
        parse_risk(text)


def test_prospect_has_a_finite_gradient_at_the_reference_point():
    atoms = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    Prospect().value(ReturnDistribution(atoms)).backward()
    assert np.isfinite(atoms.grad.numpy()).all()
