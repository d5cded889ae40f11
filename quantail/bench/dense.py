"""Bounds for the network benchmarks: only the dense products and convolutions of a network."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from quantail.networks import QuantileNetwork
from quantail.networks.heads import ImplicitQuantiles, LearnedFractions
from quantail.networks.layers import NoisyLinear
from quantail.settings import Settings

Work = Callable[[], object]


def forward_pass(network: QuantileNetwork, observations: Tensor, num_taus: int) -> Work:
    """Return the work of one forward pass with `num_taus` fractions per state, without gradients."""
    steps = _convolutions(network, observations, backward=False)
    return _all(steps + _linears(network, len(observations), num_taus, backward=False))


def update(network: QuantileNetwork, settings: Settings, observations: Tensor) -> Work:
    """Return the work of an update: online and target forward passes, and the online backward pass."""
    s, batch = settings, len(observations)
    steps: list[Work] = []
    together = s.policy_samples + s.target_samples
    passes = [s.target_samples, s.policy_samples] if s.double else [together]
    if s.munchausen:
        passes.append(s.policy_samples)  # the policy at the state in which the action was taken
    for num_taus in passes:
        steps += _convolutions(network, observations, backward=False)
        steps += _linears(network, batch, num_taus, backward=False)
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


def _linears(network: QuantileNetwork, batch: int, num_taus: int, backward: bool) -> list[Work]:
    head = network.head
    implicit = isinstance(head, ImplicitQuantiles)
    dueling = head.v is not None if isinstance(head, ImplicitQuantiles) else False
    rows = batch * (num_taus + dueling) if implicit else batch
    assert not isinstance(head, LearnedFractions)  # its fractions come from two networks
    steps: list[Work] = []
    trains_inputs = False  # whether a layer before this one has weights to learn
    for layer in head.modules():
        if isinstance(layer, nn.Linear | NoisyLinear):
            input_gradient, trains_inputs = trains_inputs or not implicit, True
            steps += _products(layer.weight.detach(), rows, backward, input_gradient)
    return steps


def _products(weight: Tensor, rows: int, backward: bool, input_gradient: bool) -> list[Work]:
    outputs, inputs = weight.shape
    weight = weight.detach().clone()
    x, y = torch.randn(rows, inputs), torch.randn(rows, outputs)
    steps: list[Work] = [_product(x, weight.t(), torch.empty_like(y))]
    if backward:
        steps.append(_product(y.t(), x, torch.empty_like(weight)))
        if input_gradient:
            steps.append(_product(y, weight, torch.empty_like(x)))
    return steps


def _product(a: Tensor, b: Tensor, out: Tensor) -> Work:
    return lambda: torch.mm(a, b, out=out)


def _convolution(layer: nn.Conv2d, x: Tensor) -> Work:
    weight = layer.weight.detach()
    return lambda: torch.conv2d(x, weight, None, layer.stride)


def _convolution_backward(layer: nn.Conv2d, x: Tensor, gradient: Tensor, input_gradient: bool) -> Work:
    weight = layer.weight.detach()
    wanted = [input_gradient, True, False]
    return lambda: torch.ops.aten.convolution_backward(
        gradient, x, weight, None, layer.stride, [0, 0], [1, 1], False, [0, 0], 1, wanted
    )


def _all(steps: list[Work]) -> Work:
    def run() -> None:
        with torch.no_grad():
            for step in steps:
                step()

    return run
