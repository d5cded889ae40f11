import math

import pytest
import torch

from quantail.learning.optimizers import CenteredRMSProp, build_auxiliary, build_optimizer
from quantail.networks.heads import AuxiliaryOptimizer
from tests.helpers.configs import config


def test_rmsprop_is_dqns_with_centered_squares_and_epsilon_inside_the_root():
    start, gradients = 2.0, [0.5, -0.2, 0.9, 0.9, 0.0]
    parameter = torch.nn.Parameter(torch.tensor([start], dtype=torch.float64))
    optimizer = CenteredRMSProp([parameter], lr=0.1, decay=0.95, eps=0.01)
    value, mean, square = start, 0.0, 0.0
    for gradient in gradients:
        parameter.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        mean = 0.95 * mean + 0.05 * gradient
        square = 0.95 * square + 0.05 * gradient**2
        value -= 0.1 * gradient / math.sqrt(square - mean**2 + 0.01)
        assert float(parameter.detach()) == pytest.approx(value, rel=1e-12)


def test_the_settings_name_the_optimizer():
    parameters = [torch.nn.Parameter(torch.zeros(1))]
    assert isinstance(build_optimizer(config().learner, parameters), torch.optim.Adam)
    group = build_optimizer(config(optimizer="rmsprop").learner, parameters).param_groups[0]
    assert (group["eps"], group["decay"]) == (pytest.approx(0.01 / 32**2), 0.95)


def test_the_fraction_optimizer_steps_on_a_mean_as_the_authors_does_on_a_sum():
    batch, gradients = 16, [3e-4, -1e-3, 2e-2]  # gradients of the sum over the batch
    ours = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    theirs = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = build_auxiliary(AuxiliaryOptimizer((ours,), 1e-3, 1e-5), batch, [ours])
    authors = CenteredRMSProp([theirs], lr=1e-3, decay=0.95, eps=1e-5)
    for gradient in gradients:
        ours.grad = torch.tensor([gradient / batch], dtype=torch.float64)
        theirs.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        authors.step()
        torch.testing.assert_close(ours.detach(), theirs.detach(), rtol=1e-12, atol=0)
