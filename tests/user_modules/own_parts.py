"""Parts of a user, small enough to read: the mean of some outputs, and one linear layer."""

from dataclasses import dataclass, replace

import torch
from torch import nn

import quantail
from quantail.agents.exploration import Exploration
from quantail.distributions import ReturnDistribution
from quantail.learning.learner import Learner
from quantail.learning.targets import BellmanTarget
from quantail.networks import LossOutput, ReturnHead, Torso
from quantail.networks.heads.implicit import ImplicitConfig, ImplicitQuantiles
from quantail.replay import UniformSampler
from quantail.risk import RiskMeasure


class Linear(Torso):
    @dataclass(frozen=True)
    class Config:
        width: int = quantail.setting(16, "units of the layer", unit="units", least=1)

    def __init__(self, observation, config):
        super().__init__(observation, config)
        self.num_features = config.width
        self.layer = nn.Linear(int(torch.tensor(observation.tree.input_shape).prod()), config.width)

    def forward(self, observations):
        return self.layer(observations.flatten(1).float())


class Means(ReturnHead):
    @dataclass(frozen=True)
    class Config:
        outputs: int = quantail.setting(4, "equally likely returns", least=1, most=64)
        scale: float = 1.0
        kind: str = quantail.setting("square", "loss", choices=("square", "absolute"))
        sizes: tuple[int, ...] = (3, 2)
        flag: bool = False

    def __init__(self, spec, config):
        super().__init__(spec, config)
        self.shape = (spec.num_actions, config.outputs)
        self.layer = spec.linear(spec.num_features, spec.num_actions * config.outputs)

    def distribution(self, features, taus):
        return ReturnDistribution(self.layer(features).unflatten(1, self.shape))

    def loss(self, features, actions, target, taus):
        predicted = self.distribution(features, taus).select(actions).atoms
        error = self.config.scale * (target.mean().unsqueeze(1) - predicted)
        losses = error.square().mean(1) if self.config.kind == "square" else error.abs().mean(1)
        return LossOutput(losses, losses.detach(), predicted.detach().mean(1))


class Measured(Means):
    """Reports how far apart its returns are."""

    def loss(self, features, actions, target, taus):
        output = super().loss(features, actions, target, taus)
        spread = self.distribution(features, taus).select(actions).std()
        return replace(output, metrics={"spread": spread.detach(), "one": torch.ones_like(spread)})


class Clashing(Means):
    """Reports a metric under a name that metrics.csv has already."""

    def loss(self, features, actions, target, taus):
        output = super().loss(features, actions, target, taus)
        return replace(output, metrics={"loss": output.values})


@dataclass(frozen=True)
class WiderConfig(ImplicitConfig):
    bonus: float = 0.5


class WiderImplicit(ImplicitQuantiles):
    """A head on top of a built-in one: its flat settings stay flat, its own are dotted."""

    Config = WiderConfig


class Doubled(BellmanTarget):
    """A target with rewards counted twice, for one step alone."""

    needs = {"n_step": 1}  # noqa: RUF012


class Cautious(Exploration):
    """Explores with half of the probability."""

    def choose(self, values, masks, num_envs, num_actions, epsilon, generator):
        actions = generator.integers(num_actions, size=num_envs)
        explore = generator.random(num_envs) < epsilon / 2
        return torch.where(torch.tensor(explore), torch.tensor(actions), values().argmax(1)).numpy()


class Newest(UniformSampler):
    """A sampler of its own name."""


class Counting(Learner):
    """A learner that counts its updates itself."""

    own = 0

    def update(self, batch):
        Counting.own += 1
        return super().update(batch)


@dataclass(frozen=True)
class Spread(RiskMeasure):
    """The mean minus a weight times the distance between two quantiles."""

    fraction: float
    weight: float

    def value(self, z, context=None):
        ends = z.quantile(torch.tensor([self.fraction, 1 - self.fraction]))
        return z.mean() - self.weight * (ends[..., 1] - ends[..., 0])


class NoHead:
    """Not a head."""


class WrongShape(Means):
    def distribution(self, features, taus):
        return ReturnDistribution(self.layer(features))


class WrongWidth(Linear):
    def __init__(self, observation, config):
        super().__init__(observation, config)
        self.num_features = 5


class OwnDice(Means):
    def distribution(self, features, taus):
        found = super().distribution(features, taus)
        return ReturnDistribution(found.atoms + torch.randn_like(found.atoms))


class NoDefault(Means):
    @dataclass(frozen=True)
    class Config:
        outputs: int
