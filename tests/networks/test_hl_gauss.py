"""The mean learned by classification (HL-Gauss)."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from quantail.batch import Batch
from quantail.distributions import ReturnDistribution
from quantail.networks.losses import gaussian_histogram
from quantail.taus import midpoint_taus
from tests.helpers.configs import build_head, config
from tests.helpers.learners import learner

LOW, HIGH, BINS, ACTIONS = -4.0, 6.0, 20, 3
WIDTH = (HIGH - LOW) / BINS
EDGES = torch.linspace(LOW, HIGH, BINS + 1, dtype=torch.float64)
CENTRES = (EDGES[1:] + EDGES[:-1]) / 2
SIGMA = 0.75 * WIDTH


def head(**changes):
    settings = config(head="hl-gauss", atoms=BINS, value_min=LOW, value_max=HIGH, head_size=8)
    torch.manual_seed(0)
    return build_head(settings.replace(**changes), 5, ACTIONS).double()


def features(batch=4):
    return torch.randn(batch, 5, generator=torch.Generator().manual_seed(1)).double()


def points(*means):
    """Targets that are point masses."""
    return ReturnDistribution(torch.tensor(means, dtype=torch.float64).unsqueeze(1))


@pytest.mark.parametrize("ratio", [0.05, 0.75, 3.0])
@pytest.mark.parametrize("mean", [LOW, LOW + 0.01, -1.3, 0.0, 2.25, HIGH - 0.3, HIGH])
def test_the_histogram_is_the_gaussian_between_the_edges_over_its_mass_in_the_range(mean, ratio):
    sigma = ratio * WIDTH
    found = gaussian_histogram(torch.tensor([mean], dtype=torch.float64), EDGES, sigma)[0]
    cumulated = norm.cdf(EDGES.numpy(), loc=mean, scale=sigma)
    expected = np.diff(cumulated) / (cumulated[-1] - cumulated[0])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-14)
    assert float(found.sum()) == pytest.approx(1)


def test_the_histogram_of_a_target_well_inside_the_range_has_the_targets_mean():
    """Up to what binning changes: its Fourier series has the amplitude (w/π) exp(−2π²(σ/w)²)."""
    means = torch.linspace(LOW + 7 * SIGMA, HIGH - 7 * SIGMA, 101, dtype=torch.float64)
    found = gaussian_histogram(means, EDGES, SIGMA) @ CENTRES
    largest = WIDTH / np.pi * np.exp(-2 * np.pi**2 * 0.75**2)  # 2.4e-6
    assert float((found - means).abs().max()) == pytest.approx(largest, rel=0.05)


def test_the_value_is_the_mean_of_the_bin_centres_under_the_softmax_and_has_no_deviation():
    mine, psi = head(), features()
    logits = mine.f(psi).view(4, BINS, ACTIONS)
    found = mine.distribution(psi, midpoint_taus)
    assert found.atoms.shape == (4, ACTIONS, 1)
    torch.testing.assert_close(
        found.mean(), torch.einsum("bia,i->ba", torch.softmax(logits, dim=1), CENTRES)
    )
    assert mine.mean_only
    assert (found.std() == 0).all()
    assert mine.support() == (LOW, HIGH)


def test_dueling_acts_on_the_logits_bin_by_bin():
    mine, psi = head(dueling=True), features()
    value, advantage = mine.v(psi), mine.f(psi).view(4, BINS, ACTIONS)
    logits = value[:, :, None] + advantage - advantage.mean(dim=2, keepdim=True)
    expected = torch.einsum("bia,i->ba", torch.softmax(logits, dim=1), CENTRES)
    torch.testing.assert_close(mine.distribution(psi, midpoint_taus).mean(), expected)


def test_the_gradient_in_the_logits_is_the_softmax_less_the_targets_histogram():
    mine, psi, actions = head(), features(), torch.tensor([0, 2, 2, 1])
    means = [-1.0, 0.3, 4.0, 5.9]
    logits = mine.f(psi)
    logits.retain_grad()
    mine.f.forward = lambda _: logits
    mine.loss(psi, actions, points(*means), midpoint_taus).losses.sum().backward()
    gradient = logits.grad.view(4, BINS, ACTIONS)
    softmax = torch.softmax(logits.detach().view(4, BINS, ACTIONS), dim=1)
    for row, (action, mean) in enumerate(zip(actions, means, strict=True)):
        cumulated = norm.cdf(EDGES.numpy(), loc=mean, scale=SIGMA)
        target = torch.from_numpy(np.diff(cumulated) / (cumulated[-1] - cumulated[0]))
        torch.testing.assert_close(gradient[row, :, action], softmax[row, :, action] - target)
        others = [other for other in range(ACTIONS) if other != action]
        assert (gradient[row][:, others] == 0).all()


def test_only_the_mean_of_the_target_counts_and_the_priority_is_the_distance_of_the_means():
    mine, psi, actions = head(), features(), torch.tensor([0, 2, 2, 1])
    atoms = 0.5 * torch.randn(4, 7, generator=torch.Generator().manual_seed(2)).double()
    probs = torch.softmax(torch.randn(4, 7, generator=torch.Generator().manual_seed(3)).double(), 1)
    spread = mine.loss(psi, actions, ReturnDistribution(atoms, probs), midpoint_taus)
    means = (atoms * probs).sum(dim=1)
    alone = mine.loss(psi, actions, points(*means.tolist()), midpoint_taus)
    torch.testing.assert_close(spread.losses, alone.losses)
    values = mine.distribution(psi, midpoint_taus).mean().gather(1, actions[:, None])[:, 0]
    torch.testing.assert_close(spread.values, values)
    torch.testing.assert_close(spread.priorities, (means - values).abs())


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_targets_beyond_the_range_count_as_its_ends_and_give_finite_losses_and_gradients(precision):
    mine, actions = head().to(precision), torch.zeros(4, dtype=torch.int64)
    psi = features().to(precision)[:1].expand(4, -1)
    for targets in (LOW, LOW - 1, -1e9, -np.inf), (HIGH, HIGH + 1, 1e9, np.inf):
        atoms = points(*targets).atoms.to(precision)
        found = mine.loss(psi, actions, ReturnDistribution(atoms), midpoint_taus)
        assert found.losses.isfinite().all()
        # Equal rows of a product may round differently on some processors.
        torch.testing.assert_close(found.losses, found.losses[:1].expand(4), rtol=1e-6, atol=0)
        torch.testing.assert_close(found.priorities, found.priorities[:1].expand(4), rtol=1e-6, atol=0)
        found.losses.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in mine.parameters())


def test_the_means_of_two_arms_are_learned():
    mine = learner(head="hl-gauss", actions=2)
    rng, state = np.random.default_rng(0), torch.ones(128, 3)
    for _ in range(600):
        arms = rng.integers(2, size=128)
        pay = np.where(arms == 0, rng.normal(1.0, 2.0, 128), 0.6).astype(np.float32)
        pulled = torch.from_numpy(arms), torch.from_numpy(pay), torch.zeros(128)
        mine.update(Batch(state, *pulled, state, torch.ones(128), torch.arange(128)))
    with torch.no_grad():
        learned = mine.online.head.distribution(mine.online.features(state[:1]), midpoint_taus)
    assert learned.mean()[0].tolist() == pytest.approx([1.0, 0.6], abs=0.1)
