"""A torso and a return head together."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from quantail.networks.config import NetworkConfig
from quantail.networks.heads import HeadSpec, ReturnHead
from quantail.networks.layers import NoisyLinear, factorised_noise, initialise, linear_layers
from quantail.networks.torsos import Torso
from quantail.parts import Part
from quantail.seeds import derived_seed
from quantail.spaces import Observation, ObservationSpec

TORCH, NUMBA = "torch", "numba"  # compute paths


class ReturnNetwork(nn.Module):
    """A torso ψ and a head. Features are computed once and can be passed to any method of the head."""

    def __init__(self, torso: Torso, head: ReturnHead) -> None:
        super().__init__()
        self.torso = torso
        self.head = head
        self.kernels = TORCH  # the compute path on a CPU: compiled kernels, or torch alone
        self._noisy = [layer for layer in head.modules() if isinstance(layer, NoisyLinear)]

    def use_kernels(self) -> None:
        """Use compiled kernels where the torso or the head has them."""
        if any([self.head.use_kernels(), self.torso.use_kernels()]):
            self.kernels = NUMBA

    def use_torch(self) -> None:
        """Use torch alone, as on an accelerator."""
        self.kernels = TORCH

    def use_dense_products(self) -> None:
        """Use torch alone and products whose shapes do not depend on the data, for torch.compile."""
        self.head.use_dense_products()
        self.torso.use_dense_products()
        self.kernels = TORCH

    def features(self, observations: Observation) -> Tensor:
        """Return ψ(x), [B, d]."""
        features: Tensor = self.torso(observations)
        return features

    def draw_noise(self, generator: np.random.Generator) -> None:
        """Draw fresh noise in every noisy layer."""
        if not self._noisy:
            return
        sizes = [sum(layer.weight.shape) for layer in self._noisy]
        drawn = factorised_noise(generator, sum(sizes)).to(self._noisy[0].weight)
        for layer, noise in zip(self._noisy, torch.split(drawn, sizes), strict=True):
            layer.set_noise(noise)

    def drop_noise(self) -> None:
        """Use the mean weights until noise is drawn again."""
        for layer in self._noisy:
            layer.noise = None

    def forward(self, observations: Observation, taus: Tensor) -> Tensor:
        """Return Z_τ(x, a): taus [B, T] -> [B, T, A]."""
        return self.head.quantiles(self.features(observations), taus)


def build_network(
    config: NetworkConfig, head: Part, spec: ObservationSpec, num_actions: int, seed: int = 0
) -> ReturnNetwork:
    """Build the network of a configuration. Each part has its own seed, derived from this one."""
    torso = seeded(lambda: build_torso(config, spec), derived_seed(seed, "torso"))
    built = seeded(
        lambda: build_head(config, head, torso.num_features, num_actions, torso.nonnegative),
        derived_seed(seed, "head"),
    )
    built.start()
    network = ReturnNetwork(torso, built)
    if config.kernels == "auto":
        network.use_kernels()
    return network


def build_torso(config: NetworkConfig, observation: ObservationSpec) -> Torso:
    """Build the torso of a configuration, for this kind of observation."""
    torso: Torso = config.torso.build(observation)
    return torso


def build_head(
    config: NetworkConfig, head: Part, num_features: int, num_actions: int, nonnegative: bool = False
) -> ReturnHead:
    """Build the head of a configuration, on features of this size."""
    spec = HeadSpec(
        num_features=num_features,
        num_actions=num_actions,
        hidden=config.head_size,
        linear=linear_layers(config.noisy_sigma if config.noisy else 0.0),
        dueling=config.dueling,
        nonnegative=nonnegative,
    )
    built: ReturnHead = head.build(spec)
    return built


Module = TypeVar("Module", bound=nn.Module)


def seeded(build: Callable[[], Module], seed: int) -> Module:
    """Build a part so that the seed alone determines its weights, whatever layers it has.

    Linear and convolutional layers get the paper's initialisation. Others keep torch's own, drawn under
    this seed; the global generator stays as it was. Weights are float32, whatever torch's default is.
    """
    default = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # of the CPU alone: no GPU's state is forked
        torch.set_default_dtype(torch.float32)
        try:
            part = build()
        finally:
            torch.set_default_dtype(default)
    initialise(part, torch.Generator().manual_seed(seed))
    return part
