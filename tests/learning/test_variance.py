"""Levels drawn by other schemes: the same gradient in the mean, with less or more spread."""

import pytest
import torch

from tests.helpers.learners import batch, learner

SCHEMES = ("independent", "stratified", "antithetic", "shared")


def gradients(scheme, draws=600):
    """Of one loss, for fixed targets, over draws of the online levels: [draws, parameters]."""
    mine = learner(online_samples=8, target_samples=8, policy_samples=4, tau_sampling=scheme)
    data = batch(6)
    target = learner(online_samples=8, target_samples=8, seed=1).targets(data)
    found = []
    for _ in range(draws):
        loss = mine.losses(data, target).losses.mean()
        drawn = torch.autograd.grad(loss, mine.main.parameters)
        found.append(torch.cat([g.flatten() for g in drawn]))
    return torch.stack(found).double()


@pytest.fixture(scope="module")
def drawn():
    return {scheme: gradients(scheme) for scheme in SCHEMES}


@pytest.mark.parametrize("scheme", SCHEMES[1:])
def test_the_expected_gradient_is_that_of_independent_levels(drawn, scheme):
    ours, theirs = drawn[scheme], drawn["independent"]
    error = (ours.mean(dim=0) - theirs.mean(dim=0)).square().sum()
    expected = sum(g.var(dim=0).sum() / len(g) for g in (ours, theirs))
    assert error < 3 * expected


def test_stratified_levels_vary_least_and_shared_ones_most(drawn):
    spread = {scheme: float(g.var(dim=0).sum()) for scheme, g in drawn.items()}
    assert spread["stratified"] < 0.7 * spread["independent"]
    assert spread["antithetic"] < 0.8 * spread["independent"]
    assert spread["shared"] > 1.5 * spread["independent"]
