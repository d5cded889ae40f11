import math

import pytest
import torch

from quantail.distributions import ReturnDistribution, select_actions
from quantail.learning.targets import munchausen_bonus, soft


def test_the_target_takes_one_action_for_all_samples_not_the_best_of_each():
    # Action 0 is better on average; action 1 has the larger high quantile.
    policy = torch.tensor([[[5.0, 5.0], [0.0, 8.0]]])  # [1, 2 actions, K=2], means 5 and 4
    samples = torch.tensor([[[5.0, 5.0, 5.0], [0.0, 8.0, 9.0]]])
    best = ReturnDistribution(policy).mean().argmax(dim=1)
    assert best.tolist() == [0]
    target = bellman_target(torch.tensor([1.0]), torch.tensor([0.5]), ReturnDistribution(samples), best)
    assert target.atoms.tolist() == [[3.5, 3.5, 3.5]]


def test_an_ended_episode_leaves_the_reward_alone():
    samples = torch.full((2, 2, 3), 100.0)
    target = bellman_target(
        torch.tensor([1.0, 2.0]),
        torch.tensor([0.0, 0.9]),
        ReturnDistribution(samples),
        torch.tensor([0, 1]),
    )
    torch.testing.assert_close(target.atoms, torch.tensor([[1.0] * 3, [92.0] * 3]))


@pytest.mark.parametrize("sizes", [(2, 3, 4), (1, 1, 1), (4, 1, 2)])
def test_taken_picks_each_rows_own_action(sizes):
    returns = torch.randn(sizes)
    actions = torch.randint(sizes[1], (sizes[0],))
    expected = torch.stack([returns[row, action] for row, action in enumerate(actions)])
    torch.testing.assert_close(select_actions(returns, actions), expected)


def test_a_target_keeps_the_chances_of_the_chosen_actions_atoms():
    atoms = torch.tensor([[[1.0, 2.0], [1.0, 2.0]]])
    probabilities = torch.tensor([[[0.9, 0.1], [0.2, 0.8]]])
    target = bellman_target(
        torch.ones(1), torch.full((1,), 0.5), ReturnDistribution(atoms, probabilities), torch.tensor([1])
    )
    assert target.atoms.tolist() == [[1.5, 2.0]]
    assert target.probs.tolist() == [pytest.approx([0.2, 0.8])]
    assert float(target.mean()) == pytest.approx(0.2 * 1.5 + 0.8 * 2.0)
    shared = ReturnDistribution(atoms, torch.tensor([[[0.3, 0.7]]]))
    target = bellman_target(torch.ones(1), torch.full((1,), 0.5), shared, torch.tensor([1]))
    assert target.probabilities().tolist() == [pytest.approx([0.3, 0.7])]
    equal = bellman_target(
        torch.ones(1), torch.full((1,), 0.5), ReturnDistribution(atoms), torch.tensor([1])
    )
    assert equal.probabilities().tolist() == [[0.5, 0.5]]


def bellman_target(rewards, discounts, returns, actions):
    return returns.select(actions).affine(rewards, discounts)


def soft_target(rewards, discounts, returns, values, temperature):
    return soft(returns, values, temperature).affine(rewards, discounts)


# Munchausen, a number at a time


def log_policy(values, temperature):
    most = max(values)
    total = sum(math.exp((v - most) / temperature) for v in values)
    return [(v - most) / temperature - math.log(total) for v in values]


def soft_example(atoms=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    values = torch.randn(4, 3, generator=g, dtype=torch.float64)
    distribution = torch.randn(4, 3, atoms, generator=g, dtype=torch.float64)
    rewards = torch.randn(4, generator=g, dtype=torch.float64)
    discounts = torch.tensor([0.9, 0.9, 0.0, 0.5], dtype=torch.float64)
    return values, distribution, rewards, discounts


@pytest.mark.parametrize("temperature", [0.03, 0.5])
def test_the_bonus_is_the_scaled_log_policy_clipped_below_and_never_positive(temperature):
    values, _, _, _ = soft_example()
    actions = torch.tensor([0, 1, 2, 0])
    bonus = munchausen_bonus(values, actions, 0.9, temperature, -1.0)
    for row, action in enumerate(actions):
        scaled = temperature * log_policy(values[row].tolist(), temperature)[action]
        assert float(bonus[row]) == pytest.approx(0.9 * min(max(scaled, -1.0), 0.0))
    assert (bonus <= 0).all()
    if temperature < 0.1:
        assert bonus.min() == pytest.approx(-0.9)  # so that the clip is seen


@pytest.mark.parametrize("atoms", [1, 3])  # DQN and IQN
def test_the_soft_target_averages_over_actions_level_by_level(atoms):
    values, distribution, rewards, discounts = soft_example(atoms)
    target = soft_target(
        rewards, discounts, ReturnDistribution(distribution, comonotone=True), values, 0.4
    )
    for row in range(4):
        logs = log_policy(values[row].tolist(), 0.4)
        for j in range(atoms):
            soft = sum(
                math.exp(log) * (float(distribution[row, a, j]) - 0.4 * log)
                for a, log in enumerate(logs)
            )
            expected = float(rewards[row]) + float(discounts[row]) * soft
            assert float(target.atoms[row, j]) == pytest.approx(expected)


def test_the_soft_value_of_dqn_is_the_scaled_log_sum_of_exponentials():
    values, _, rewards, discounts = soft_example()
    target = soft_target(rewards, discounts, ReturnDistribution(values[..., None]), values, 0.2)
    soft = 0.2 * torch.logsumexp(values / 0.2, dim=1)
    torch.testing.assert_close(target.mean(), rewards + discounts * soft)


def test_the_soft_target_of_a_categorical_law_is_the_mixture_with_the_same_mean():
    values, _, rewards, discounts = soft_example()
    support = torch.linspace(-1, 1, 5, dtype=torch.float64).expand(4, 3, 5)
    probabilities = torch.softmax(torch.randn(4, 3, 5, dtype=torch.float64), dim=2)
    target = soft_target(rewards, discounts, ReturnDistribution(support, probabilities), values, 0.3)
    assert target.atoms.shape == (4, 15)
    torch.testing.assert_close(target.probs.sum(dim=1), torch.ones(4, dtype=torch.float64))
    for row in range(4):
        logs = log_policy(values[row].tolist(), 0.3)
        mean = sum(
            math.exp(log) * (float((support[row, a] * probabilities[row, a]).sum()) - 0.3 * log)
            for a, log in enumerate(logs)
        )
        expected = float(rewards[row]) + float(discounts[row]) * mean
        assert float(target.mean()[row]) == pytest.approx(expected)


def test_an_action_that_is_not_allowed_drops_out_of_the_soft_target():
    values, distribution, rewards, discounts = soft_example()
    values[:, 2] = -math.inf
    target = soft_target(rewards, discounts, ReturnDistribution(distribution), values, 0.3)
    two = soft_target(rewards, discounts, ReturnDistribution(distribution[:, :2]), values[:, :2], 0.3)
    assert target.mean().isfinite().all()
    torch.testing.assert_close(target.mean(), two.mean())
