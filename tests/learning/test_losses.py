import itertools

import pytest
import torch
from torch.autograd import gradcheck

from quantail.learning.losses import quantile_huber_loss


def triple_loop(predictions, taus, targets, kappa):
    """Algorithm 1, a number at a time."""
    losses = []
    for b in range(len(predictions)):
        total = 0.0
        for i in range(predictions.shape[1]):
            mean = 0.0
            for j in range(targets.shape[1]):
                delta = float(targets[b, j]) - float(predictions[b, i].detach())
                if kappa == 0:
                    size = abs(delta)
                elif abs(delta) <= kappa:
                    size = 0.5 * delta**2 / kappa
                else:
                    size = (abs(delta) - 0.5 * kappa) * kappa / kappa
                mean += abs(float(taus[b, i]) - (1.0 if delta < 0 else 0.0)) * size
            total += mean / targets.shape[1]
        losses.append(total)
    return torch.tensor(losses, dtype=torch.float64)


def example(batch=4, n=5, n_target=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    predictions = 2 * torch.randn(batch, n, generator=g, dtype=torch.float64)
    taus = torch.rand(batch, n, generator=g, dtype=torch.float64)
    targets = 2 * torch.randn(batch, n_target, generator=g, dtype=torch.float64)
    return predictions, taus, targets


@pytest.mark.parametrize("kappa", [0.0, 0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("sizes", [(4, 5, 3), (3, 2, 7), (1, 1, 1), (6, 1, 4), (2, 8, 1), (5, 5, 5)])
def test_loss_matches_a_triple_loop(sizes, kappa):
    parts = example(*sizes)
    loss = quantile_huber_loss(*parts, kappa)
    assert loss.shape == (sizes[0],)
    torch.testing.assert_close(loss, triple_loop(*parts, kappa), rtol=1e-12, atol=1e-12)


def wrong(predictions, taus, targets, kappa, mistake):
    """The loss with one of the mistakes that others shipped."""
    delta = targets[:, None, :] - predictions[:, :, None]
    levels, below = taus[:, :, None], (delta < 0).double()
    if mistake == "indicator flipped":
        below = (delta > 0).double()
    if mistake == "levels on the target axis":
        levels = taus[:, : targets.shape[1]][:, None, :]
    size = delta.abs()
    huber = torch.where(size <= kappa, 0.5 * size**2, kappa * (size - 0.5 * kappa))
    if mistake != "division by kappa forgotten":
        huber = huber / kappa
    if mistake == "Huber averaged over the batch":
        huber = huber.mean(dim=0, keepdim=True).expand_as(huber)
    rho = (levels - below).abs() * huber
    if mistake == "sum over targets, mean over predictions":
        return rho.sum(dim=2).mean(dim=1)
    if mistake == "mean over both":
        return rho.mean(dim=(1, 2))
    return rho.mean(dim=2).sum(dim=1)


MISTAKES = [
    "indicator flipped",
    "levels on the target axis",
    "division by kappa forgotten",
    "Huber averaged over the batch",
    "sum over targets, mean over predictions",
    "mean over both",
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_that_others_shipped_is_told_from_the_loss(mistake):
    parts = example()
    right = quantile_huber_loss(*parts, 0.5)
    torch.testing.assert_close(right, wrong(*parts, 0.5, "none"))
    assert not torch.allclose(right, wrong(*parts, 0.5, mistake), rtol=1e-3)


@pytest.mark.parametrize("kappa", [0.0, 0.7])
def test_gradient_is_the_derivative_of_the_loss(kappa):
    predictions, taus, targets = example()
    predictions.requires_grad_()
    assert gradcheck(lambda p: quantile_huber_loss(p, taus, targets, kappa), predictions)


def test_the_indicators_own_step_has_no_gradient_into_the_levels():
    predictions, taus, targets = example()
    taus.requires_grad_()
    assert gradcheck(lambda t: quantile_huber_loss(predictions, t, targets, 1.0), taus)


@pytest.mark.parametrize("kappa", [0.0, 0.01])
def test_the_minimiser_is_the_quantile_and_rises_with_tau(kappa):
    """With the indicator flipped the minimiser would be the quantile at 1 − τ."""
    targets = torch.linspace(0, 10, 101, dtype=torch.float64).expand(1, -1)
    grid = torch.linspace(0, 10, 1001, dtype=torch.float64)
    found = []
    for tau in (0.1, 0.25, 0.5, 0.9):
        level = torch.full((len(grid), 1), tau, dtype=torch.float64)
        losses = quantile_huber_loss(grid[:, None], level, targets.expand(len(grid), -1), kappa)
        found.append(float(grid[losses.argmin()]))
    assert found == pytest.approx([1.0, 2.5, 5.0, 9.0], abs=0.11)
    assert all(a < b for a, b in itertools.pairwise(found))
