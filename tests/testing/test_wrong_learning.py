"""A head that learns the wrong thing, or contradicts itself, gets its own sentence from `check_head`."""

from dataclasses import replace

import pytest
import torch

from quantail.distributions import select_actions
from quantail.risk import Neutral
from quantail.testing import PartError, check_head
from tests.testing.good_head import CategoricalHead, GoodHead, SamplingHead
from tests.testing.wrong import collector

wrong, WRONG = collector()


@wrong("did not learn the distribution of known returns")
class LearnsTheMean(GoodHead):
    def pinball(self, predictions, target):
        return (predictions - target.mean().unsqueeze(1)).square().sum(dim=1)


@wrong("did not learn the distribution of known returns")
class MirroredFractions(GoodHead):
    """It learns the quantile at 1 − τ², which is not the distribution."""

    def pinball(self, predictions, target):
        delta = target.atoms.unsqueeze(1) - predictions.unsqueeze(2)
        fractions = self.fractions.square().unsqueeze(1)
        weights = torch.where(delta < 0, fractions - 1, fractions)
        return (weights * delta * target.probabilities().unsqueeze(1)).sum(dim=(1, 2))


@wrong("did not learn the mean of known returns")
class LearnsTheMedian(GoodHead):
    mean_only = True

    def atoms(self, features):
        return super().atoms(features).mean(dim=2, keepdim=True)

    def pinball(self, predictions, target):
        distance = (predictions.unsqueeze(2) - target.atoms.unsqueeze(1)).abs()
        return (distance * target.probabilities().unsqueeze(1)).sum(dim=(1, 2))


@wrong("moves the returns of actions that were not taken, through out.weight")
class LearnsTheLastAction(GoodHead):
    def loss(self, features, actions, target, taus):
        return super().loss(features, actions * 0 + (self.spec.num_actions - 1), target, taus)


@wrong("gives other answers after loading its state_dict into a new one")
class HiddenScale(GoodHead):
    def __init__(self, spec, config):
        super().__init__(spec, config)
        self.scale = 1 + float(torch.rand(()))

    def atoms(self, features):
        return self.scale * super().atoms(features)


@wrong("shares weights with its deep copy")
class Closure(GoodHead):
    def __init__(self, spec, config):
        super().__init__(spec, config)
        self.apply_hidden = lambda features: torch.relu(self.hidden(features))
        self.apply_out = lambda hidden: self.out(hidden)

    def atoms(self, features):
        out = self.apply_out(self.apply_hidden(features))
        return out.unflatten(1, (self.spec.num_actions, -1))


@wrong("for the values of its loss where its distribution has")
class ValuesAreMaxima(GoodHead):
    def loss(self, features, actions, target, taus):
        output = super().loss(features, actions, target, taus)
        best = select_actions(self.atoms(features), actions).max(dim=1).values
        return replace(output, values=best.detach())


@wrong("for value under cvar:0.5 where its distribution has")
class ForgetsTheRisk(SamplingHead):
    def value(self, features, risk, taus, context=None):
        return super().value(features, Neutral(), taus, context)


@wrong("for value_and_distribution under cvar:0.5 where its distribution has")
class ForgetsTheRiskInOnePass(CategoricalHead):
    def value_and_distribution(self, features, risk, taus, context=None):
        return super().value_and_distribution(features, Neutral(), taus, context)


@wrong("gives another distribution in value_and_distribution under cvar:0.5")
class DistortsTheTarget(SamplingHead):
    def value_and_distribution(self, features, risk, taus, context=None):
        value = self.value(features, risk, taus, context)
        return value, self.distribution(features, lambda *asked: risk.tau_map(taus(*asked)))


@wrong("gives quantiles at a W1 distance of")
class SquaredFractions(GoodHead):
    def quantiles(self, features, taus):
        return super().quantiles(features, taus**3)


@wrong("gives quantiles that fall with the fraction")
class FallingQuantiles(GoodHead):
    def quantiles(self, features, taus):
        return super().quantiles(features, 1 - taus)


@pytest.mark.parametrize(("head", "words"), WRONG)
def test_a_head_that_learned_wrongly_gets_its_sentence(head, words):
    with pytest.raises(PartError, match=f"^head {head.__name__} .*{words}"):
        check_head(head)
