"""The dense products and convolutions of a network, with nothing between them: the bound."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from quantail.networks import QuantileNetwork
from quantail.networks.heads import ImplicitQuantiles, LearnedFractions
from quantail.networks.layers import NoisyLinear
from quantail.settings import Settings

Work = Callable[[], object]


def forward_pass(network: QuantileNetwork, observations: Tensor, levels: int) -> Work:
    """One pass of so many levels a state, without gradients."""
    steps = _convolutions(network, observations, backward=False)
    return _all(steps + _linears(network, len(observations), levels, backward=False))


def update(network: QuantileNetwork, settings: Settings, observations: Tensor) -> Work:
    """Both passes forward and the online one backward, as the settings ask."""
    s, batch = settings, len(observations)
    steps: list[Work] = []
    together = s.policy_samples + s.target_samples
    passes = [s.target_samples, s.policy_samples] if s.double else [together]
    if s.munchausen:
        passes.append(s.policy_samples)  # the policy where the action was taken
    for levels in passes:
        steps += _convolutions(network, observations, backward=False)
        steps += _linears(network, batch, levels, backward=False)
    steps += _convolutions(network, observations, backward=True)
    steps += _linears(network, batch, s.online_samples, backward=True)
    return _all(steps)


def _convolutions(network: QuantileNetwork, observations: Tensor, backward: bool) -> list[Work]:
    steps: list[Work] = []
    x = network.torso[0](observations)
    for position, layer in enumerate(network.torso):
        if isinstance(layer, nn.Conv2d):
            y = layer(x).detach()
            steps.append(_convolution(layer, x))
            if backward:
                steps.append(_convolution_backward(layer, x, torch.randn_like(y), position > 1))
            x = y
        elif isinstance(layer, nn.Linear):
            x = x.flatten(1)
            steps += _products(layer.weight, len(x), backward, position > 1)
            x = torch.randn(len(x), layer.out_features)
    return steps


def _linears(network: QuantileNetwork, batch: int, levels: int, backward: bool) -> list[Work]:
    head = network.head
    implicit = isinstance(head, ImplicitQuantiles)
    dueling = head.v is not None if isinstance(head, ImplicitQuantiles) else False
    rows = batch * (levels + dueling) if implicit else batch
    assert not isinstance(head, LearnedFractions)  # asks its levels of two networks
    steps: list[Work] = []
    learned = False  # whether anything before a layer learns
    for layer in head.modules():
        if isinstance(layer, nn.Linear | NoisyLinear):
            into, learned = learned or not implicit, True
            steps += _products(layer.weight.detach(), rows, backward, into)
    return steps


def _products(weight: Tensor, rows: int, backward: bool, into: bool) -> list[Work]:
    outputs, inputs = weight.shape
    weight = weight.detach().clone()
    x, y = torch.randn(rows, inputs), torch.randn(rows, outputs)
    steps: list[Work] = [_product(x, weight.t(), torch.empty_like(y))]
    if backward:
        steps.append(_product(y.t(), x, torch.empty_like(weight)))
        if into:
            steps.append(_product(y, weight, torch.empty_like(x)))
    return steps


def _product(a: Tensor, b: Tensor, out: Tensor) -> Work:
    return lambda: torch.mm(a, b, out=out)


def _convolution(layer: nn.Conv2d, x: Tensor) -> Work:
    weight = layer.weight.detach()
    return lambda: torch.conv2d(x, weight, None, layer.stride)


def _convolution_backward(layer: nn.Conv2d, x: Tensor, gradient: Tensor, into: bool) -> Work:
    weight = layer.weight.detach()
    wanted = [into, True, False]
    return lambda: torch.ops.aten.convolution_backward(
        gradient, x, weight, None, layer.stride, [0, 0], [1, 1], False, [0, 0], 1, wanted
    )


def _all(steps: list[Work]) -> Work:
    def run() -> None:
        with torch.no_grad():
            for step in steps:
                step()

    return run
