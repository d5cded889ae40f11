"""Policy evaluation contracts distances between return distributions, as the paper states."""

import math

import numpy as np
import pytest
import torch

from quantail.distributions import ReturnDistribution
from quantail.envs.worlds import WORLDS
from quantail.envs.worlds.exact import backup, solve
from quantail.taus import midpoints

NAMES = list(WORLDS)


def random_distributions(world, seed):
    """An arbitrary distribution for every state and action: 5 atoms with random probabilities."""
    rng = np.random.default_rng(seed)
    return {
        (state, action): ReturnDistribution.of(rng.normal(0, 5, 5), rng.dirichlet(np.ones(5)))
        for state in world.states
        for action in range(len(world.actions))
    }


def evaluated(world, policy, distributions, discount):
    """One step of policy evaluation, everywhere."""
    return {
        (state, action): backup(world, state, action, policy, distributions, discount)
        for state, action in distributions
    }


def projected(distributions, count):
    """The quantile projection: `count` equally likely atoms at the midpoints."""
    taus = midpoints(count, torch.float64)
    return {key: ReturnDistribution(z.quantile(taus)) for key, z in distributions.items()}


def farthest(one, other, p):
    """The largest distance W_p over states and actions."""
    return max(float(one[key].wasserstein(other[key], p)) for key in one)


@pytest.mark.parametrize("p", [1, 2, math.inf])
@pytest.mark.parametrize("name", NAMES)
def test_policy_evaluation_is_a_contraction_by_the_discount_in_the_largest_wasserstein_distance(name, p):
    world, discount = WORLDS[name](), 0.7
    policy = solve(world).policy
    for seed in range(3):
        a, b = random_distributions(world, seed), random_distributions(world, seed + 100)
        before = farthest(a, b, p)
        after = farthest(evaluated(world, policy, a, discount), evaluated(world, policy, b, discount), p)
        assert after <= discount * before + 1e-9
        assert after > 0 or len(world.states) == 1  # not because everything has collapsed


@pytest.mark.parametrize("name", NAMES)
def test_evaluation_followed_by_the_quantile_projection_contracts_in_the_maximal_distance(name):
    world, discount = WORLDS[name](), 0.7
    policy = solve(world).policy
    for seed in range(3):
        a, b = (projected(random_distributions(world, s), 7) for s in (seed, seed + 100))
        before = farthest(a, b, math.inf)
        steps = [projected(evaluated(world, policy, z, discount), 7) for z in (a, b)]
        assert farthest(*steps, math.inf) <= discount * before + 1e-9


def test_the_quantile_projection_alone_does_not_expand_the_maximal_distance():
    world, equal = WORLDS["Quantail/Chain-v0"](), 0
    for seed in range(20):
        a, b = random_distributions(world, seed), random_distributions(world, seed + 100)
        before = farthest(a, b, math.inf)
        after = farthest(projected(a, 7), projected(b, 7), math.inf)
        assert after <= before + 1e-9
        equal += math.isclose(after, before)
    assert equal  # it is no contraction by itself


def test_in_the_first_distance_the_projection_can_expand():
    a = ReturnDistribution.of([0.0, 1.0], [0.5 + 1e-6, 0.5 - 1e-6])
    b = ReturnDistribution.of([0.0, 1.0], [0.5 - 1e-6, 0.5 + 1e-6])
    one = torch.tensor([0.5], dtype=torch.float64)
    after = ReturnDistribution(a.quantile(one)).wasserstein(ReturnDistribution(b.quantile(one)))
    assert float(a.wasserstein(b)) < 1e-5 < 1 == float(after)
