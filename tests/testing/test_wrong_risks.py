"""Each fault that a risk measure may have gets its own sentence from `check_risk`."""

from dataclasses import dataclass

import pytest
import torch

from quantail.distributions import ReturnDistribution
from quantail.risk import CVaR, MeanStd, RiskMeasure
from quantail.testing import PartError, check_risk
from tests.testing.wrong import collector

wrong, WRONG = collector()


@dataclass(frozen=True)
class Middle(RiskMeasure):
    """The mean of the middle half, a measure from outside that keeps the contract."""

    name = "middle"

    def value(self, z, context=None):
        return z.distorted(lambda c: (2 * c - 0.5).clamp(0, 1))

    @property
    def tau_map(self):
        return lambda tau: 0.25 + 0.5 * tau


class Worst(RiskMeasure):
    """The worst return, which has no map of τ."""

    name = "worst"

    def value(self, z, context=None):
        possible = z.atoms if z.probs is None else torch.where(z.probabilities() > 0, z.atoms, torch.inf)
        return possible.amin(dim=-1)


@pytest.mark.parametrize("measure", [Middle(), Worst()])
def test_a_measure_from_outside_that_keeps_the_contract_passes(measure):
    check_risk(measure)


def test_a_class_instead_of_a_measure_is_refused():
    with pytest.raises(PartError, match="risk Middle is not an instance of RiskMeasure"):
        check_risk(Middle)


@wrong("has the text form ''")
class Silent(Middle):
    def __str__(self):
        return ""


@wrong("has the text form '<.* at 0x")
class Addressed(Middle):
    __str__ = object.__repr__
    __repr__ = object.__repr__


@wrong(r"gave \(1,\) when asked for the value of atoms \(7,\)")
class KeepsTheAxis(Middle):
    def value(self, z, context=None):
        return super().value(z).unsqueeze(-1)


@wrong(r"raised IndexError .* the value of atoms \(7,\)")
class TwoAxesAlone(Middle):
    def value(self, z, context=None):
        return super().value(z).sum(dim=1)


@wrong("gave torch.float32 when asked for .* torch.float64")
class Single(Middle):
    def value(self, z, context=None):
        return super().value(z).float()


@wrong("that are not finite")
class Logarithm(Middle):
    def value(self, z, context=None):
        return z.expectation(torch.log)


@wrong("another value when others are in the same batch")
class Relative(Middle):
    def value(self, z, context=None):
        return z.mean() - z.mean().mean()


@wrong("when the same distribution is written with its atoms in another order")
class FirstAtom(Middle):
    def value(self, z, context=None):
        return z.atoms[..., 0]


@wrong("when the same distribution is written with each atom split in two")
class Modal(RiskMeasure):
    """The most likely atom's probability counts, so that a split atom counts less."""

    name = "modal"

    def value(self, z, context=None):
        return z.mean() + z.probabilities().amax(dim=-1)


@wrong("when the same distribution is written with further atoms of probability 0")
class Highest(RiskMeasure):
    name = "highest"

    def value(self, z, context=None):
        return z.atoms.amax(dim=-1)


@wrong("when the same distribution is written with probs that are all equal")
class PrefersPlain(RiskMeasure):
    name = "plain"

    def value(self, z, context=None):
        return z.mean() + (z.probs is None)


@wrong(r"raised ValueError .* the value of atoms \(4, 7\) with probs \(1, 7\)")
class NoBroadcast(RiskMeasure):
    name = "sharp"

    def value(self, z, context=None):
        rows, probs = z.atoms.reshape(-1, z.atoms.shape[-1]), z.probs
        if probs is None:
            return z.mean()
        pairs = zip(rows, probs.reshape(-1, rows.shape[1]), strict=True)
        return torch.stack([atoms @ shares for atoms, shares in pairs]).reshape(z.shape)


@wrong("raised AttributeError .* empty DecisionContext")
class NeedsTheStock(Middle):
    def value(self, z, context=None):
        return super().value(z) + (0 if context is None else 0 * context.stock.sum())


@wrong("another value with an empty DecisionContext")
class LikesContexts(Middle):
    def value(self, z, context=None):
        return super().value(z) + (context is not None)


@wrong("gives a value without a gradient")
class Detached(Middle):
    def value(self, z, context=None):
        return super().value(z).detach()


@wrong("a gradient that is not finite")
class PlainDeviation(RiskMeasure):
    name = "deviation"
    monotone = False

    def value(self, z, context=None):
        return z.mean() - (z.expectation(torch.square) - z.mean().square()).clamp(min=0).sqrt()


@wrong("gives its atoms the slope .* where finite differences give")
class HalfAGradient(Middle):
    def value(self, z, context=None):
        whole = super().value(z)
        return (whole + whole.detach()) / 2


@wrong("falls from .* when some returns rise")
class MeanVariance(RiskMeasure):
    name = "mean-variance"

    def value(self, z, context=None):
        return z.mean() - 2 * z.std().square()


@wrong("for the certain return")
class Doubled(Middle):
    def value(self, z, context=None):
        return 2 * super().value(z)


@wrong("as the mean of quantiles at tau_map")
class OtherTail(CVaR):
    """Its value is the mean of the worst fraction, its map that of the best."""

    @property
    def tau_map(self):
        return lambda tau: 1 - self.eta * (1 - tau)


@wrong("maps τ to")
class LeavesTheUnit(Middle):
    @property
    def tau_map(self):
        return lambda tau: 2 * tau


@wrong("has a tau_map that falls")
class Falling(Middle):
    @property
    def tau_map(self):
        return lambda tau: 1 - tau


@wrong("gives tau_weights of at least")
class Lopsided(Middle):
    def tau_weights(self, edges):
        return edges.diff() / 2


@wrong("says is_neutral and gives")
class NotNeutral(Middle):
    is_neutral = True


@wrong("has neutral_eta 0.5 and gives")
class NotTheMean(CVaR):
    neutral_eta = 0.5


@wrong("another measure after annealed")
class NeverThere(Middle):
    def annealed(self, fraction):
        return CVaR(0.5)


@wrong("draws its own random numbers .* same answer")
class Sampled(RiskMeasure):
    name = "sampled"

    def value(self, z, context=None):
        return z.quantile(torch.rand(32)).mean(dim=-1)


@wrong("changed in place what it was given")
class SortsInPlace(RiskMeasure):
    name = "sorts"

    def value(self, z, context=None):
        z.atoms.copy_(z.atoms.sort(dim=-1).values)
        return z.mean()


@wrong("raised TypeError .* a deep copy")
class Uncopied(Middle):
    def __deepcopy__(self, memo):
        raise TypeError("no")


@pytest.mark.parametrize(("measure", "words"), WRONG)
def test_a_wrong_measure_gets_its_sentence(measure, words):
    made = measure(0.3) if issubclass(measure, CVaR) else measure()
    with pytest.raises(PartError, match=f"^risk .*{words}"):
        check_risk(made)


def test_a_measure_that_says_that_it_is_not_monotone_is_not_asked_to_be():
    class Honest(MeanVariance):
        monotone = False

    check_risk(Honest())


def test_mean_std_is_honest_about_not_being_monotone():
    """The measure says of itself that it is not monotone: a rare gain can lower it."""
    nothing = ReturnDistribution.of([0.0, 0.0], [0.9, 0.1])
    gain = ReturnDistribution.of([0.0, 10.0], [0.9, 0.1])
    assert MeanStd(1).value(gain) < MeanStd(1).value(nothing)
    assert not MeanStd.monotone
