"""A head with randomness of its own, or answers that depend on what they must not, gets its sentence."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from quantail.distributions import ReturnDistribution
from quantail.testing import PartError, check_head
from tests.testing.good_head import ATOMS, GoodHead, SamplingHead
from tests.testing.wrong import collector

wrong, WRONG = collector()


def test_a_check_leaves_the_global_generators_as_they_were():
    torch.manual_seed(7), np.random.seed(7), random.seed(7)
    expected = torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()
    torch.manual_seed(7), np.random.seed(7), random.seed(7)
    with pytest.raises(PartError):
        check_head(Dropping)
    assert (torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()) == expected


@wrong(r"draws its own random numbers \(from the global generator of torch\)")
class Dropping(GoodHead):
    def atoms(self, features):
        return super().atoms(torch.dropout(features, 0.5, True))


@wrong(r"draws its own random numbers \(from the global generator of numpy\)")
class DrawsFromNumpy(GoodHead):
    def distribution(self, features, taus):
        return ReturnDistribution(self.atoms(features) + np.random.rand())


@wrong("draws its own random numbers .*asked twice .*two answers")
class OwnGenerator(GoodHead):
    def __init__(self, spec, config):
        super().__init__(spec, config)
        self.generator = np.random.default_rng(0)

    def distribution(self, features, taus):
        return ReturnDistribution(self.atoms(features) + self.generator.random())


@wrong("keeps hidden state")
class Counting(GoodHead):
    calls = 0

    def distribution(self, features, taus):
        self.calls += 1
        return ReturnDistribution(self.atoms(features) / self.calls)


@wrong(r"called taus\(5, 32.0\) for 5 states")
class AsksForHalves(SamplingHead):
    def distribution(self, features, taus):
        return super().distribution(features, lambda batch, count: taus(batch, float(count)))


@wrong(r"called taus\(15, 32\) for 5 states")
class AsksForMoreStates(SamplingHead):
    def distribution(self, features, taus):
        return super().distribution(features, lambda batch, count: taus(3 * batch, count))


@wrong("raised RuntimeError .*the distribution of 5 states")
class WritesToTaus(SamplingHead):
    """The midpoints of evaluation are one row for all states, which cannot be written to."""

    def distribution(self, features, taus):
        return super().distribution(features, lambda batch, count: taus(batch, count).clamp_(0.1, 0.9))


@wrong("another distribution when the batch is (permuted|split)")
class Centred(GoodHead):
    def atoms(self, features):
        return super().atoms(features - features.mean(dim=0))


@wrong("other losses when the batch is split")
class LossOfTheBatch(GoodHead):
    def loss(self, features, actions, target, taus):
        output = super().loss(features, actions, target, taus)
        return replace(output, losses=output.losses / output.losses.sum().detach())


@wrong("other quantiles when the fractions are permuted")
class SortsQuantiles(GoodHead):
    def quantiles(self, features, taus):
        return super().quantiles(features, taus).sort(dim=1).values


@wrong("another distribution with spec.nonnegative")
class TrustsTheFlag(GoodHead):
    def atoms(self, features):
        return super().atoms(features.sqrt() if self.spec.nonnegative else features)


@wrong("another gradient with spec.nonnegative")
class SkipsGradients(GoodHead):
    def pinball(self, predictions, target):
        losses = super().pinball(predictions, target)
        return losses / 2 + losses.detach() / 2 if self.spec.nonnegative else losses


@wrong("mixes tensors of two devices when asked for the distribution")
class StaysOnTheCPU(GoodHead):
    def distribution(self, features, taus):
        return ReturnDistribution(self.atoms(features) + torch.linspace(0, 1, ATOMS))


@wrong("mixes tensors of two devices when asked for the distribution")
class LeavesTausOnTheCPU(SamplingHead):
    def quantiles(self, features, taus):
        return super().quantiles(features, taus) + 0 * taus.unsqueeze(2)


@pytest.mark.parametrize(("head", "words"), WRONG)
def test_a_head_with_a_hidden_dependence_gets_its_sentence(head, words):
    with pytest.raises(PartError, match=f"^head {head.__name__} .*{words}"):
        check_head(head)
