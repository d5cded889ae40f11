"""Parameters that are views of one tensor: the same values, states and gradients as apart."""

import numpy as np
import pytest
import torch
from torch import nn

from quantail.learning.optimizers import Adam, AdamConfig, CenteredRMSProp
from quantail.learning.parameter_group import ALIGNED, ParameterGroup


def adam(parameters):
    return Adam(parameters, 0.01, AdamConfig(1e-3))


def rmsprop(parameters):
    return CenteredRMSProp(parameters, 0.01, 0.95, 1e-3)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=0.01)


def parameters(seed=0):
    """A matrix, a vector, a scalar, and a matrix that is stored transposed."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((5, 3), (7,), (), (4, 6))
    drawn = [torch.randn(shape, generator=generator) for shape in shapes]
    drawn[3] = drawn[3].t().contiguous().t()
    return [nn.Parameter(one) for one in drawn]


def loss_of(them, scale=1.0):
    return scale * sum(((one - index) ** 2).sum() for index, one in enumerate(them))


def step(group, clip=0.0):
    group.zero_grad()
    loss_of(group.parameters).backward()
    group.step(clip)


@pytest.mark.parametrize("build", [adam, rmsprop, adamw])
@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_joined_parameters_move_as_they_do_apart(build, clip):
    joined, apart = ParameterGroup(parameters(), build), parameters()
    optimizer = build(apart)
    for _ in range(5):
        step(joined, clip)
        optimizer.zero_grad()
        loss_of(apart).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(apart, clip)
        optimizer.step()
    for mine, other in zip(joined.parameters, apart, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-7)
        for name, value in optimizer.state[other].items():
            torch.testing.assert_close(joined.state_of(mine)[name], value, rtol=1e-5, atol=1e-7)


def test_parameters_of_an_elementwise_optimizer_share_one_tensor_and_keep_their_layout():
    group = ParameterGroup(parameters(), adam)
    owners = {one.untyped_storage().data_ptr() for one in group.parameters}
    assert len(owners) == 1
    assert [one.stride() for one in group.parameters] == [one.stride() for one in parameters()]
    assert all(one.storage_offset() % ALIGNED == 0 for one in group.parameters)
    assert len(group.optimizer.param_groups[0]["params"]) == 1


def test_parameters_of_an_optimizer_from_outside_stay_apart():
    group = ParameterGroup(parameters(), adamw)
    assert len({one.untyped_storage().data_ptr() for one in group.parameters}) == 4


@pytest.mark.parametrize("build", [adam, rmsprop, adamw])
def test_a_restored_group_goes_on_as_the_saved_one(build):
    saved = ParameterGroup(parameters(), build)
    for _ in range(3):
        step(saved)
    states = [{k: v.clone() for k, v in saved.state_of(one).items()} for one in saved.parameters]
    fresh = ParameterGroup([nn.Parameter(one.detach().clone()) for one in saved.parameters], build)
    fresh.load_state(dict(zip(fresh.parameters, states, strict=True)))
    for _ in range(3):
        step(saved)
        step(fresh)
    for mine, other in zip(fresh.parameters, saved.parameters, strict=True):
        np.testing.assert_array_equal(mine.detach(), other.detach())


@pytest.mark.parametrize("build", [adam, rmsprop, adamw])
def test_the_shapes_of_a_state_are_those_of_its_parameter(build):
    group = ParameterGroup(parameters(), build)
    shapes = [group.state_shapes(one) for one in group.parameters]
    assert all(not group.state_of(one) for one in group.parameters)  # asking takes no step
    step(group)
    for one, expected in zip(group.parameters, shapes, strict=True):
        found = group.state_of(one)
        assert {k: v.shape for k, v in found.items()} == {k: v.shape for k, v in expected.items()}


def test_gradients_that_somebody_has_removed_are_not_lost():
    group, other = ParameterGroup(parameters(), adam), ParameterGroup(parameters(), adam)
    for _ in range(2):
        step(other)
    step(group)
    for one in group.parameters:
        one.grad = None
    step(group)
    for mine, one in zip(group.parameters, other.parameters, strict=True):
        np.testing.assert_array_equal(mine.detach(), one.detach())


def test_a_parameter_that_a_loss_does_not_reach_has_no_gradient_left_from_before():
    group = ParameterGroup(parameters(), adam)
    step(group)
    first = group.parameters[0]
    before = group.state_of(first)["exp_avg"].clone()
    group.zero_grad()
    loss_of(group.parameters[1:]).backward()
    group.step()
    torch.testing.assert_close(group.state_of(first)["exp_avg"], 0.9 * before)


def test_a_step_without_any_gradient_is_one_of_zero_gradients():
    group = ParameterGroup(parameters(), adam)
    step(group)
    before = group.state_of(group.parameters[1])["exp_avg"].clone()
    group.zero_grad()
    group.step()
    torch.testing.assert_close(group.state_of(group.parameters[1])["exp_avg"], 0.9 * before)


def test_the_step_of_a_subclass_of_adam_is_its_own():
    class Counting(Adam):
        steps = 0

        def step(self, closure=None):
            Counting.steps += 1
            return super().step(closure)

    group = ParameterGroup(parameters(), lambda them: Counting(them, 0.01, AdamConfig(1e-3)))
    for _ in range(3):
        step(group)
    assert Counting.steps == 3
