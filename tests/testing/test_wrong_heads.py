"""Each fault that a return head may have gets its own sentence from `check_head`."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn

from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError
from quantail.testing import PartError, check_head
from tests.testing.good_head import (
    ATOMS,
    CategoricalHead,
    GoodHead,
    ProposingHead,
    SamplingHead,
)
from tests.testing.wrong import collector

wrong, WRONG = collector()


@pytest.mark.parametrize("head", [GoodHead, ProposingHead, CategoricalHead, SamplingHead])
def test_a_head_from_outside_that_keeps_the_contract_passes(head):
    check_head(head)


def test_the_error_is_a_quantail_error_and_an_assertion_and_one_sentence():
    with pytest.raises(PartError) as caught:
        check_head(nn.Linear)
    assert isinstance(caught.value, QuantailError)
    assert isinstance(caught.value, AssertionError)
    assert str(caught.value).startswith("head Linear does not inherit from ReturnHead, but ")
    assert str(caught.value).count(". ") == 0
    assert str(caught.value).endswith(".")


def test_a_head_instead_of_its_class_is_refused():
    with pytest.raises(PartError, match="the class itself"):
        check_head(3)


def test_a_configuration_of_another_class_is_refused():
    with pytest.raises(PartError, match="it takes a GoodConfig"):
        check_head(GoodHead, {"width": 2})


# Class and configuration


@wrong("has the Config .* must be a frozen dataclass")
class Thawed(GoodHead):
    @dataclass
    class Config:
        width: float = 1.0


@wrong("has the Config None")
class NoConfig(GoodHead):
    Config = None


@wrong("has no default for width in its Config")
class NoDefault(GoodHead):
    @dataclass(frozen=True)
    class Config:
        width: float


@wrong(r"gave '' from describe\(config\)")
class Silent(GoodHead):
    @staticmethod
    def describe(config):
        return ""


# Building


@wrong("raised ValueError .* a head with plain dueling layers")
class RudeAboutDueling(GoodHead):
    def __init__(self, spec, config):
        if spec.dueling:
            raise ValueError("no")
        super().__init__(spec, config)


@wrong("same layers with and without spec.dueling")
class IgnoresDueling(GoodHead):
    def __init__(self, spec, config):
        super().__init__(replace(spec, dueling=False), config)


@wrong("no noisy layer where the spec asks for them")
class IgnoresNoise(GoodHead):
    def __init__(self, spec, config):
        super().__init__(replace(spec, linear=nn.Linear), config)


@wrong("keeps the tensor fractions as a plain attribute")
class PlainTensor(GoodHead):
    def __init__(self, spec, config):
        super().__init__(spec, config)
        del self.fractions
        self.fractions = (torch.arange(ATOMS) + 0.5) / ATOMS


@wrong("starts scale at other values each time")
class NumpyStart(GoodHead):
    def __init__(self, spec, config):
        super().__init__(spec, config)
        self.scale = nn.Parameter(torch.tensor(np.random.rand(), dtype=torch.float32))


@wrong("_extra_state of type dict in its state_dict")
class Pickled(GoodHead):
    def get_extra_state(self):
        return {"steps": 3}

    def set_extra_state(self, state):
        pass


@wrong(r"gave \(2, -2\) from support\(\)")
class ReversedSupport(CategoricalHead):
    def support(self):
        return 2, -2


@wrong(r"atoms from -2 to 2 with the support \(-1, 1\)")
class NarrowSupport(CategoricalHead):
    def support(self):
        return -1, 1


# The form of the answers


@wrong("gave a Tensor when asked for the distribution .* must give a ReturnDistribution")
class BareTensor(GoodHead):
    def distribution(self, features, taus):
        return self.atoms(features)


@wrong(r"gave atoms of shape \(5, 8, 3\) .* must have the shape \(5, 3, atoms\)")
class Transposed(GoodHead):
    def distribution(self, features, taus):
        return ReturnDistribution(self.atoms(features).transpose(1, 2))


@wrong(r"gave atoms of shape \(2, 8\) .* of 1 states")
class Squeezed(GoodHead):
    def distribution(self, features, taus):
        return ReturnDistribution(self.atoms(features).squeeze(0))


@wrong("raised ValueError .* of 1 states")
class BatchNormalised(GoodHead):
    def __init__(self, spec, config):
        super().__init__(spec, config)
        self.norm = nn.BatchNorm1d(spec.num_features, track_running_stats=False)

    def atoms(self, features):
        return super().atoms(self.norm(features))


@wrong("gave atoms of torch.float64")
class DoubleAtoms(GoodHead):
    def distribution(self, features, taus):
        return ReturnDistribution(self.atoms(features).double())


@wrong("gave atoms when asked for .* that are not finite")
class Infinite(GoodHead):
    def distribution(self, features, taus):
        return ReturnDistribution(self.atoms(features) / 0)


@wrong("a sum of .* they must be at least 0 and sum to 1")
class SoftmaxOverActions(CategoricalHead):
    def distribution(self, features, taus):
        probs = self.logits(features).softmax(dim=1)
        return ReturnDistribution(self.returns.expand_as(probs), probs)


@wrong("gave probabilities of at least -")
class NegativeProbabilities(CategoricalHead):
    def distribution(self, features, taus):
        probs = self.logits(features)
        return ReturnDistribution(
            self.returns.expand_as(probs), probs - probs.mean(dim=2, keepdim=True) + 1 / 11
        )


@wrong(r"gave probabilities of shape \(5, 11\) .* must broadcast")
class ProbabilitiesOfOneAction(CategoricalHead):
    def distribution(self, features, taus):
        probs = self.logits(features).softmax(dim=2)
        return ReturnDistribution(self.returns.expand_as(probs), probs[:, 0])


@wrong(r"gave \(5, 3, 4\) when asked for the quantiles .* must have the shape \(5, 4, 3\)")
class QuantilesTransposed(GoodHead):
    def quantiles(self, features, taus):
        return super().quantiles(features, taus).transpose(1, 2)


@wrong("raised TypeError .* the value under neutral")
class NoContext(GoodHead):
    def value(self, features, risk, taus):
        return super().value(features, risk, taus)


@wrong("gave a Tensor when asked for value_and_distribution .* tuple of both")
class ValueAlone(GoodHead):
    def value_and_distribution(self, features, risk, taus, context=None):
        return self.value(features, risk, taus, context)


@wrong("changed in place what it was given when asked for the distribution")
class InPlace(GoodHead):
    def atoms(self, features):
        features -= features.min(dim=1, keepdim=True).values - 1
        return super().atoms(features)


@wrong("raised RuntimeError .* when asked for a distribution in float64")
class SinglePrecisionAlone(GoodHead):
    def atoms(self, features):
        return super().atoms(features) @ torch.eye(ATOMS)


@pytest.mark.parametrize(("head", "words"), WRONG)
def test_a_wrong_head_gets_its_sentence(head, words):
    with pytest.raises(PartError, match=f"^head {head.__name__} .*{words}"):
        check_head(head)
