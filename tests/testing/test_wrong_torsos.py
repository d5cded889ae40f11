"""Each fault that a torso may have gets its own sentence from `check_torso`."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from quantail.errors import QuantailError
from quantail.networks import Torso
from quantail.spaces import ObservationSpec
from quantail.testing import PartError, check_torso
from tests.testing.wrong import collector

VECTOR = ObservationSpec.array((5,), "float32", "vector")
BYTES = ObservationSpec.array((4, 4), "uint8", "hw", stack=2)
wrong, WRONG = collector()


class GoodTorso(Torso):
    """One layer, for observations of all kinds."""

    nonnegative = True

    def __init__(self, observation, config):
        super().__init__(observation, config)
        self.layer = nn.Linear(math.prod(observation.tree.input_shape), 8)
        self.num_features = 8

    def inputs(self, observations):
        return observations.flatten(1).to(torch.float32) * self.observation.tree.scale

    def forward(self, observations):
        return torch.relu(self.layer(self.inputs(observations)))


class ForImages(GoodTorso):
    """It refuses vectors."""

    def __init__(self, observation, config):
        if not observation.tree.is_image:
            raise QuantailError("torso for-images takes images.")
        super().__init__(observation, config)


@pytest.mark.parametrize("torso", [GoodTorso, ForImages])
def test_a_torso_from_outside_that_keeps_the_contract_passes(torso):
    check_torso(torso)


def test_an_observation_of_ones_own_is_the_only_one_that_is_tried():
    check_torso(GoodTorso, VECTOR)
    with pytest.raises(PartError, match=r"refused all kinds .*torso for-images takes images"):
        check_torso(ForImages, VECTOR)


def test_a_module_that_is_no_torso_is_refused():
    with pytest.raises(PartError, match="torso Linear does not inherit from Torso"):
        check_torso(nn.Linear)


@wrong("refused all kinds of observation")
class RefusesAll(GoodTorso):
    def __init__(self, observation, config):
        raise QuantailError("I take nothing.")


@wrong("raised KeyError .* a torso for vector observations")
class Crashes(GoodTorso):
    def __init__(self, observation, config):
        raise KeyError("h")


@wrong("has the Config .* must be a frozen dataclass")
class Thawed(GoodTorso):
    @dataclass
    class Config:
        width: int = 3


@wrong("has None as num_features")
class NoSize(GoodTorso):
    def __init__(self, observation, config):
        super().__init__(observation, config)
        del self.num_features


@wrong("has 'yes' as nonnegative")
class Vague(GoodTorso):
    nonnegative = "yes"


@wrong(r"gave \(6, 8\) when asked for features .* must have the shape \(6, 9\)")
class WrongSize(GoodTorso):
    def __init__(self, observation, config):
        super().__init__(observation, config)
        self.num_features = 9


@wrong(r"gave \(8,\) when asked for features of 1 ")
class Squeezed(GoodTorso):
    def forward(self, observations):
        return super().forward(observations).squeeze(0)


@wrong("gave torch.float64")
class Doubled(GoodTorso):
    def forward(self, observations):
        return super().forward(observations).double()


@wrong("raised RuntimeError .* of uint8")
class FloatsOnly(GoodTorso):
    def inputs(self, observations):
        return observations.flatten(1)


@wrong("in stacks of 3")
class ForgetsTheStack(GoodTorso):
    def __init__(self, observation, config):
        super().__init__(observation, config)
        self.layer = nn.Linear(math.prod(observation.tree.shape), 8)


@wrong("that are not finite")
class Infinite(GoodTorso):
    def forward(self, observations):
        return super().forward(observations) / 0


@wrong(r"draws its own random numbers \(from the global generator of torch\) .* same answer")
class DropsFeatures(GoodTorso):
    def forward(self, observations):
        return torch.dropout(super().forward(observations), 0.5, self.training)


@wrong("draws its own random numbers or keeps hidden state")
class RunningMean(GoodTorso):
    def __init__(self, observation, config):
        super().__init__(observation, config)
        self.register_buffer("mean", torch.zeros(math.prod(observation.tree.input_shape)))

    def inputs(self, observations):
        flat = super().inputs(observations)
        self.mean = 0.9 * self.mean + 0.1 * flat.mean(dim=0)
        return flat - self.mean


@wrong("changed in place what it was given")
class ScalesInPlace(GoodTorso):
    def inputs(self, observations):
        flat = observations.flatten(1)
        return (flat.mul_(0) if flat.dtype == torch.float32 else flat.float()) + 0.5


@wrong("other features when the batch is (permuted|split)")
class Centred(GoodTorso):
    def inputs(self, observations):
        flat = super().inputs(observations)
        return flat - flat.mean(dim=0)


@wrong("gave the feature -.* and says that it is nonnegative")
class Signed(GoodTorso):
    def forward(self, observations):
        return self.layer(self.inputs(observations))


@wrong("gives spare.weight no gradient")
class Spare(GoodTorso):
    def __init__(self, observation, config):
        super().__init__(observation, config)
        self.spare = nn.Linear(2, 2)


@wrong("gives layer.weight a gradient that is not finite")
class Rooted(GoodTorso):
    def forward(self, observations):
        zero = (0 * self.layer(self.inputs(observations))).square().sum(dim=1, keepdim=True).sqrt()
        return super().forward(observations) + zero


@wrong("keeps the tensor scale as a plain attribute")
class PlainTensor(GoodTorso):
    def __init__(self, observation, config):
        super().__init__(observation, config)
        self.scale = torch.ones(8)


@wrong("starts scale at other values each time")
class NumpyStart(GoodTorso):
    def __init__(self, observation, config):
        super().__init__(observation, config)
        self.register_buffer("scale", torch.tensor(np.random.rand(8), dtype=torch.float32))


@wrong("gives other answers after loading its state_dict into a new one")
class HiddenScale(GoodTorso):
    def __init__(self, observation, config):
        super().__init__(observation, config)
        self.scale = 1 + float(torch.rand(()))

    def inputs(self, observations):
        return self.scale * super().inputs(observations)


@wrong("shares weights with its deep copy")
class Closure(GoodTorso):
    def __init__(self, observation, config):
        super().__init__(observation, config)
        self.transform = lambda inputs: torch.relu(self.layer(inputs))

    def forward(self, observations):
        return self.transform(self.inputs(observations))


@wrong("mixes tensors of two devices")
class StaysOnTheCPU(GoodTorso):
    def forward(self, observations):
        return super().forward(observations) * torch.linspace(1, 2, 8)


@pytest.mark.parametrize(("torso", "words"), WRONG)
def test_a_wrong_torso_gets_its_sentence(torso, words):
    with pytest.raises(PartError, match=f"^torso {torso.__name__} .*{words}"):
        check_torso(torso)
