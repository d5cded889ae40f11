"""A torso and a head together."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from quantail.networks.distributions import ReturnDistribution
from quantail.networks.heads import Head, ImplicitQuantiles, LearnedFractions, build_head
from quantail.networks.layers import NoisyLinear, initialise
from quantail.networks.torsos import Torso, build_torso
from quantail.risk import RiskMeasure
from quantail.seeds import derived_seed
from quantail.settings import Settings
from quantail.spaces import ObservationSpec


class QuantileNetwork(nn.Module):
    """From observations and levels to returns. Features are computed once, however many τ are asked."""

    def __init__(self, torso: Torso, head: Head) -> None:
        super().__init__()
        self.torso = torso
        self.head = head
        self._noisy = [layer for layer in head.modules() if isinstance(layer, NoisyLinear)]

    def features(self, observations: Tensor) -> Tensor:
        """ψ(x): [batch, d]."""
        features: Tensor = self.torso(observations)
        return features

    def quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        """Z_τ(x, a) for features [batch, d] and taus [batch, T]: [batch, T, actions]."""
        return self.head.quantiles(features, taus)

    def values(self, features: Tensor, risk: RiskMeasure, taus: Tensor) -> Tensor:
        """Q_β(x, a): [batch, actions]. Heads that need levels τ take these uniform ones [batch, K]."""
        if not isinstance(self.head, ImplicitQuantiles):
            return self.head.distribution(features).value(risk)
        return self.quantiles(features, risk(taus).to(features.device)).mean(dim=1)

    def distribution(self, features: Tensor, taus: Tensor) -> ReturnDistribution:
        """The distribution of Z(x, ·), at uniform levels [batch, N'] where the head needs them."""
        if not isinstance(self.head, ImplicitQuantiles):
            return self.head.distribution(features)
        return ReturnDistribution(self.quantiles(features, taus.to(features.device)))

    def values_and_distribution(
        self, features: Tensor, risk: RiskMeasure, policy_taus: Tensor, taus: Tensor
    ) -> tuple[Tensor, ReturnDistribution]:
        """Q_β at K uniform levels and the distribution at N' others, for the cost of one pass."""
        if not isinstance(self.head, ImplicitQuantiles):
            distribution = self.head.distribution(features)
            return distribution.value(risk), distribution
        levels = torch.cat([risk(policy_taus), taus], dim=1).to(features.device)
        returns = self.quantiles(features, levels)  # [batch, K + N', actions]
        count = policy_taus.shape[1]
        return returns[:, :count].mean(dim=1), ReturnDistribution(returns[:, count:])

    def draw_noise(self, generator: np.random.Generator) -> None:
        """Fresh noise in every noisy layer."""
        for layer in self._noisy:
            layer.draw(generator)

    def drop_noise(self) -> None:
        """Act on the mean weights until noise is drawn again."""
        for layer in self._noisy:
            layer.noise = None

    def forward(self, observations: Tensor, taus: Tensor) -> Tensor:
        return self.quantiles(self.features(observations), taus)


def build_network(
    settings: Settings, spec: ObservationSpec, actions: int, seed: int = 0
) -> QuantileNetwork:
    """Build the network that the settings name. Each part has its own seed, derived from this one."""
    torso = seeded(
        lambda: build_torso(settings.torso, spec, settings.mlp_sizes), derived_seed(seed, "torso")
    )
    head = seeded(
        lambda: build_head(settings, torso.features, actions, torso.nonnegative),
        derived_seed(seed, "head"),
    )
    if isinstance(head, LearnedFractions):
        head.start_evenly()
    return QuantileNetwork(torso, head)


Part = TypeVar("Part", bound=nn.Module)


def seeded(build: Callable[[], Part], seed: int) -> Part:
    """Build a part so that all its weights are a function of the seed, whatever layers it has.

    Linear and convolutional layers get the paper's initialisation. Others keep torch's own, drawn under
    this seed; the global generator stays as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        part = build()
    initialise(part, torch.Generator().manual_seed(seed))
    return part
