import itertools

import pytest
import torch
from torch.autograd import gradcheck

from quantail.networks.losses import (
    categorical_divergence,
    fraction_loss,
    huber,
    project,
    quantile_huber_loss,
)
from tests.helpers.loops import double_loop, triple_loop


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


def test_targets_of_unequal_chance_count_by_it():
    predictions, taus, targets = example()
    probabilities = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64).expand(4, -1)
    twice = torch.cat([targets[:, :1], targets], dim=1)  # the first as often as the others together
    weighted = quantile_huber_loss(predictions, taus, targets, 1.0, probabilities)
    torch.testing.assert_close(weighted, quantile_huber_loss(predictions, taus, twice, 1.0))


@pytest.mark.parametrize("count", [1, 2, 20, 200])
def test_qr_dqns_loss_is_the_triple_loop_at_the_midpoints(count):
    predictions, _, targets = example(3, count, 4)
    taus = ((torch.arange(count).double() + 0.5) / count).expand(3, -1)
    loss = quantile_huber_loss(predictions, taus, targets, 1.0)
    torch.testing.assert_close(loss, triple_loop(predictions, taus, targets, 1.0))


def test_dqns_error_is_clipped_to_one_in_the_gradient():
    delta = torch.tensor([-30.0, -1.0, -0.4, 0.0, 0.7, 5.0], requires_grad=True)
    huber(delta, 1.0).sum().backward()
    assert delta.grad.tolist() == pytest.approx([-1.0, -1.0, -0.4, 0.0, 0.7, 1.0])


@pytest.mark.parametrize("kappa", [0.3, 1.0, 2.5, 100.0])
def test_the_huber_loss_of_the_mean_is_not_divided_by_kappa(kappa):
    delta = torch.linspace(-4, 4, 33, dtype=torch.float64, requires_grad=True)
    losses = huber(delta, kappa)
    torch.testing.assert_close(
        losses, torch.nn.functional.huber_loss(delta, 0 * delta, reduction="none", delta=kappa)
    )
    losses.sum().backward()
    torch.testing.assert_close(delta.grad, delta.detach().clamp(-kappa, kappa))


# C51


def categorical(batch=5, atoms=11, scale=2.0, seed=0):
    g = torch.Generator().manual_seed(seed)
    support = torch.linspace(-3, 5, 17, dtype=torch.float64)
    values = scale * torch.randn(batch, atoms, generator=g, dtype=torch.float64)
    weights = torch.softmax(torch.randn(batch, atoms, generator=g, dtype=torch.float64), dim=1)
    return values, weights, support


@pytest.mark.parametrize("scale", [0.5, 2.0, 10.0])
def test_the_projection_is_c51s_double_loop_and_preserves_mass(scale):
    atoms, weights, support = categorical(scale=scale)
    projected = project(atoms, weights, support)
    torch.testing.assert_close(projected, double_loop(atoms, weights, support))
    torch.testing.assert_close(projected.sum(dim=1), torch.ones(5, dtype=torch.float64))


def test_the_projection_preserves_the_mean_inside_the_support():
    atoms, weights, support = categorical(scale=0.7)
    assert (atoms > support[0]).all()
    assert (atoms < support[-1]).all()
    projected = project(atoms, weights, support)
    torch.testing.assert_close(projected @ support, (weights * atoms).sum(dim=1))


def test_the_projection_leaves_a_law_on_the_support_alone_and_puts_what_is_beyond_on_its_ends():
    _, _, support = categorical()
    probabilities = torch.softmax(torch.randn(3, 17, dtype=torch.float64), dim=1)
    torch.testing.assert_close(project(support.expand(3, -1), probabilities, support), probabilities)
    far = torch.tensor([[-100.0, 100.0]], dtype=torch.float64)
    ends = project(far, torch.tensor([[0.3, 0.7]], dtype=torch.float64), support)
    assert ends[0, [0, -1]].tolist() == pytest.approx([0.3, 0.7])


def test_the_divergence_is_zero_at_the_target_and_has_the_gradient_of_the_cross_entropy():
    logits = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    targets = torch.softmax(torch.randn(4, 6, dtype=torch.float64), dim=1)
    targets[0, 0] = 0  # 0 log 0 is 0
    losses = categorical_divergence(torch.log_softmax(logits, dim=1), targets)
    by_hand = [
        sum(float(m) * (m / p).log().item() for m, p in zip(t, c, strict=True) if m > 0)
        for t, c in zip(targets, torch.softmax(logits.detach(), dim=1), strict=True)
    ]
    assert losses.tolist() == pytest.approx(by_hand)
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    entropy = -(targets * torch.log_softmax(logits, dim=1)).sum()
    torch.testing.assert_close(gradient, torch.autograd.grad(entropy, logits)[0])
    same = categorical_divergence(targets[1:].log(), targets[1:])
    torch.testing.assert_close(same, torch.zeros(3, dtype=torch.float64))


# FQF


def wasserstein(inner, quantile, points=200_001):
    """∫ |F⁻¹(ω) − F⁻¹(τ̂(ω))| dω by midpoints, τ̂ the middle of the interval that holds ω."""
    edges = torch.cat([torch.zeros(1).double(), inner, torch.ones(1).double()])
    levels = (torch.arange(points).double() + 0.5) / points
    index = torch.searchsorted(edges, levels).clamp(1, len(edges) - 1)
    middles = (edges[index] + edges[index - 1]) / 2
    return float((quantile(levels) - quantile(middles)).abs().mean())


@pytest.mark.parametrize("quantile", [torch.special.ndtri, lambda t: t**3, lambda t: -(1 - t).log()])
def test_the_fraction_gradient_is_that_of_the_wasserstein_distance_by_finite_differences(quantile):
    inner = torch.tensor([0.15, 0.3, 0.62, 0.8], dtype=torch.float64)
    fractions = torch.cat([torch.zeros(1), inner, torch.ones(1)]).double()[None].requires_grad_()
    middles = (fractions[:, 1:] + fractions[:, :-1]).detach() / 2
    loss = fraction_loss(fractions, quantile(inner)[None], quantile(middles))
    (gradient,) = torch.autograd.grad(loss.sum(), fractions)
    assert gradient[0, [0, -1]].tolist() == [0, 0]
    step = 2e-3
    for i in range(4):
        ahead, behind = inner.clone(), inner.clone()
        ahead[i] += step
        behind[i] -= step
        slope = (wasserstein(ahead, quantile) - wasserstein(behind, quantile)) / (2 * step)
        assert float(gradient[0, i + 1]) == pytest.approx(slope, abs=4e-3)


def test_following_the_fraction_gradient_finds_the_best_fractions():
    logits = torch.zeros(1, 6, dtype=torch.float64, requires_grad=True)

    def quantile(level):
        return level**3

    def fractions():
        inner = torch.softmax(logits, dim=1).cumsum(dim=1)[:, :-1]
        ends = torch.zeros(1, 1).double(), torch.ones(1, 1).double()
        return torch.cat([ends[0], inner, ends[1]], dim=1)

    before = wasserstein(fractions()[0, 1:-1].detach(), quantile)
    optimizer = torch.optim.SGD([logits], lr=2.0)
    for _ in range(400):
        taus = fractions()
        middles = (taus[:, 1:] + taus[:, :-1]) / 2
        optimizer.zero_grad()
        fraction_loss(taus, quantile(taus[:, 1:-1]), quantile(middles)).sum().backward()
        optimizer.step()
    after = wasserstein(fractions()[0, 1:-1].detach(), quantile)
    assert after < 0.8 * before
    assert (fractions().diff(dim=1)[0].diff() < 0).all()  # narrower where the function is steep
