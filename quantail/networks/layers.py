"""Layers that heads are made of, and how weights start."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

FEW_ROWS = 8  # up to so many rows it is faster to add noise to the outputs than to the weights


class NoisyLinear(nn.Module):
    """A linear layer with factorised Gaussian noise on its weights (Fortunato et al. 2018).

    w = μ + σ ⊙ f(ε_out) f(ε_in)ᵀ with f(x) = sgn(x)√|x|. Without noise it uses the mean weights μ.
    """

    def __init__(self, inputs: int, outputs: int, sigma: float) -> None:
        super().__init__()
        self.sigma = sigma
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.weight_sigma = nn.Parameter(torch.empty(outputs, inputs))
        self.bias_sigma = nn.Parameter(torch.empty(outputs))
        self.noise: tuple[Tensor, Tensor] | None = None  # f(ε_out), f(ε_in)

    def draw(self, generator: np.random.Generator) -> None:
        """Draw fresh noise for this layer alone."""
        self.set_noise(factorised_noise(generator, sum(self.weight.shape)).to(self.weight))

    def set_noise(self, noise: Tensor) -> None:
        """Use this noise, f(ε) for the outputs and then the inputs, for every row until the next."""
        outputs = self.weight.shape[0]
        self.noise = noise[:outputs], noise[outputs:]

    def forward(self, x: Tensor) -> Tensor:
        if self.noise is not None and x.numel() <= FEW_ROWS * x.shape[-1]:
            out, into = self.noise
            noise = F.linear(x * into, self.weight_sigma, self.bias_sigma)
            return torch.addcmul(F.linear(x, self.weight, self.bias), noise, out)
        return F.linear(x, *self.noisy_weights())

    def noisy_weights(self) -> tuple[Tensor, Tensor]:
        """Return the weights and biases with noise."""
        if self.noise is None:
            return self.weight, self.bias
        out, into = self.noise
        weight = torch.addcmul(self.weight, self.weight_sigma, torch.outer(out, into))
        return weight, torch.addcmul(self.bias, self.bias_sigma, out)


def factorised_noise(generator: np.random.Generator, size: int) -> Tensor:
    """Return f(ε) = sgn(ε)√|ε| of standard normal ε."""
    drawn = torch.from_numpy(generator.standard_normal(size, dtype=np.float32))
    return drawn.sign() * drawn.abs().sqrt()


def linear_layers(sigma: float) -> Callable[[int, int], nn.Module]:
    """Return what builds a head's linear layers: noisy ones where sigma is above 0."""
    return partial(NoisyLinear, sigma=sigma) if sigma else nn.Linear


def weights_of(layer: nn.Module) -> tuple[Tensor, Tensor]:
    """Return the weights and biases that a linear layer uses now."""
    if isinstance(layer, NoisyLinear):
        return layer.noisy_weights()
    assert isinstance(layer, nn.Linear)
    return layer.weight, layer.bias


class MLPHead(nn.Sequential):
    """The layers of a head. Outputs in bfloat16 are converted to float32."""

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
        return outputs.float() if outputs.dtype == torch.bfloat16 else outputs


@torch.no_grad()
def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Draw weights and biases uniformly from ±1/√fan_in, from this generator alone."""
    for layer in module.modules():
        if not isinstance(layer, nn.Linear | nn.Conv2d | NoisyLinear):
            continue
        bound = 1 / math.sqrt(layer.weight[0].numel())
        layer.weight.uniform_(-bound, bound, generator=generator)
        if layer.bias is not None:
            layer.bias.uniform_(-bound, bound, generator=generator)
        if isinstance(layer, NoisyLinear):
            layer.weight_sigma.fill_(layer.sigma * bound)
            layer.bias_sigma.fill_(layer.sigma * bound)
