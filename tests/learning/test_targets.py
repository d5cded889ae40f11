import pytest
import torch

from quantail.learning.targets import bellman_target, taken
from quantail.networks.laws import Law


def test_the_target_takes_one_action_for_all_samples_not_the_best_of_each():
    # Action 0 is better on average; action 1 has the larger high quantile.
    policy = torch.tensor([[[5.0, 0.0], [5.0, 8.0]]])  # [1, K=2, 2 actions], means 5 and 4
    samples = torch.tensor([[[5.0, 0.0], [5.0, 8.0], [5.0, 9.0]]])
    best = Law(policy).mean().argmax(dim=1)
    assert best.tolist() == [0]
    target = bellman_target(torch.tensor([1.0]), torch.tensor([0.5]), Law(samples), best)
    assert target.atoms.tolist() == [[3.5, 3.5, 3.5]]


def test_an_ended_episode_leaves_the_reward_alone():
    samples = torch.full((2, 3, 2), 100.0)
    target = bellman_target(
        torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.9]), Law(samples), torch.tensor([0, 1])
    )
    torch.testing.assert_close(target.atoms, torch.tensor([[1.0] * 3, [92.0] * 3]))


@pytest.mark.parametrize("sizes", [(2, 3, 4), (1, 1, 1), (4, 1, 2)])
def test_taken_picks_each_rows_own_action(sizes):
    returns = torch.randn(sizes)
    actions = torch.randint(sizes[2], (sizes[0],))
    expected = torch.stack([returns[row, :, action] for row, action in enumerate(actions)])
    torch.testing.assert_close(taken(returns, actions), expected)
