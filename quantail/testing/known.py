"""Networks whose return distributions are read off the observation, for the checks of targets."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from quantail.distributions import ReturnDistribution
from quantail.networks import HeadSpec, ReturnHead, ReturnNetwork, Torso
from quantail.spaces import ObservationSpec
from quantail.taus import TauSampler

ACTIONS, ATOMS = 3, 5
OBSERVATION = ObservationSpec.array((ACTIONS * ATOMS,), "float32", "vector")


@dataclass(frozen=True)
class KnownConfig:
    """How the distributions are written: the three ways in which built-in heads write theirs."""

    probs: bool = False
    sampled: bool = False  # comonotone atoms at fractions from the sampler


class KnownTorso(Torso):
    """The observation as it is. It counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__(OBSERVATION, None)
        self.num_features, self.calls = ACTIONS * ATOMS, 0

    def forward(self, observations: Tensor) -> Tensor:
        self.calls += 1
        return observations.flatten(1)


class KnownHead(ReturnHead):
    """The features are the atoms of all actions, plus a weight for each of them."""

    Config = KnownConfig
    config: KnownConfig

    def __init__(self, spec: HeadSpec, config: KnownConfig) -> None:
        super().__init__(spec, config)
        self.weight = nn.Parameter(torch.zeros(ACTIONS, ATOMS))
        self.calls = 0

    def distribution(self, features: Tensor, taus: TauSampler) -> ReturnDistribution:
        self.calls += 1
        atoms = features.view(-1, ACTIONS, ATOMS) + self.weight
        if self.config.sampled:
            shift = taus(len(features), ATOMS).to(atoms).unsqueeze(1)
            return ReturnDistribution(atoms.mean(dim=2, keepdim=True) + shift, comonotone=True)
        if self.config.probs:
            return ReturnDistribution(atoms, torch.softmax(atoms.flip(1), dim=2))
        return ReturnDistribution(atoms)


def known_network(config: KnownConfig, seed: int) -> ReturnNetwork:
    """Return a network whose weights are a function of the seed."""
    spec = HeadSpec(ACTIONS * ATOMS, ACTIONS, hidden=1)
    network = ReturnNetwork(KnownTorso(), KnownHead(spec, config))
    drawn = torch.randn(ACTIONS, ATOMS, generator=torch.Generator().manual_seed(seed))
    network.head.load_state_dict({"weight": drawn})
    return network


def with_raised_action(network: ReturnNetwork, action: int, by: float) -> ReturnNetwork:
    """Return a network with other returns for one action alone."""
    state: dict[str, Any] = dict(network.head.state_dict())
    weight = state["weight"].clone()
    weight[action] += by
    head = network.head
    changed = ReturnNetwork(KnownTorso(), KnownHead(head.spec, head.config))
    changed.head.load_state_dict({"weight": weight})
    return changed


def times_asked(network: ReturnNetwork) -> int:
    """Return how often the torso or the head was asked."""
    return int(network.torso.calls) + int(network.head.calls)  # type: ignore[arg-type]
