"""What layers have in common."""

import math

import torch
from torch import nn


@torch.no_grad()
def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Draw weights and biases uniformly from ±1/√fan_in, from this generator alone."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            layer.weight.uniform_(-bound, bound, generator=generator)
            if layer.bias is not None:
                layer.bias.uniform_(-bound, bound, generator=generator)
