"""The formulas of the example plug-in's parts, against scipy and sums by hand."""

import sys

import numpy as np
import pytest
import torch
from scipy import stats

import quantail
from quantail.batch import Batch
from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError
from quantail.networks import HeadSpec, ReturnNetwork
from quantail.risk import Neutral
from quantail.spaces import ObservationSpec
from quantail.taus import midpoint_taus
from quantail.testing import check_head, check_risk, check_target, check_torso
from tests.helpers.plugins import PACKAGE, SOURCE
from tests.helpers.runs import TINY
from tests.helpers.shop import Shop

MIDPOINTS = (np.arange(200) + 0.5) / 200
SPEC = HeadSpec(num_features=4, num_actions=3, hidden=16)


@pytest.fixture(scope="module", autouse=True)
def parts():
    """Import the package from its source. This registers nothing in this process."""
    sys.path.insert(0, str(SOURCE))
    import quantail_example_plugin

    yield quantail_example_plugin
    sys.path.remove(str(SOURCE))
    for name in [one for one in sys.modules if one.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def build(head, **config):
    torch.manual_seed(0)
    built = head(SPEC, head.Config(**config)).double()
    built.start()
    return built


def sampled(batch, atoms, seed=0):
    """Return random target distributions [batch, atoms] with random probabilities."""
    generator = torch.Generator().manual_seed(seed)
    returns = 3 * torch.randn(batch, atoms, generator=generator, dtype=torch.float64)
    weights = torch.rand(batch, atoms, generator=generator, dtype=torch.float64)
    return ReturnDistribution(returns, weights / weights.sum(dim=1, keepdim=True))


def two_modes():
    """Return a third of N(−4, ½²) and two thirds of N(3, 1), as many equally likely atoms."""
    normal = stats.norm.ppf(MIDPOINTS)
    return ReturnDistribution.of(np.concatenate([-4 + 0.5 * normal[::2], 3 + normal])[None])


def expectile(z, tau):
    """Return the expectile of the first distribution of a batch, by scipy."""
    weights = z.probabilities()[0].numpy()
    return stats.expectile(z.atoms[0].detach().numpy(), tau, weights=weights)


def fit(head, target, steps, rate):
    """Train a head on one state until it has learned the target of action 1; return its distribution."""
    features = torch.ones(1, 4, dtype=torch.float64)
    optimizer = torch.optim.Adam(head.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        head.loss(features, torch.tensor([1]), target, midpoint_taus).losses.sum().backward()
        optimizer.step()
    with torch.no_grad():
        return head.distribution(features, midpoint_taus).select(torch.tensor([1]))


def test_every_part_passes_the_checks_for_parts_from_outside(parts):
    check_head(parts.GaussianMixture)
    check_head(parts.Expectiles)
    check_torso(parts.LSTMTorso, ObservationSpec.array((4,), "float32", "vector", stack=3))
    for double in (False, True):
        check_target(parts.SoftmaxTarget(parts.SoftmaxTarget.Config(double=double)))
    check_risk(parts.Spread(0.3, 0.5))


# The mixture of Gaussians


def test_the_mixture_loss_is_the_negative_log_likelihood_of_the_target(parts):
    head = build(parts.GaussianMixture, components=3)
    features, target = torch.randn(5, 4, dtype=torch.float64), sampled(5, 7)
    actions = torch.tensor([0, 1, 2, 1, 0])
    with torch.no_grad():
        output = head.loss(features, actions, target, midpoint_taus)
    log_weights, means, sigmas = (one.detach().numpy() for one in head.mixture(features))
    for row, action in enumerate(actions.tolist()):
        density = sum(
            np.exp(log_weights[row, action, k])
            * stats.norm.pdf(target.atoms[row].numpy(), means[row, action, k], sigmas[row, action, k])
            for k in range(3)
        )
        expected = -(target.probs[row].numpy() * np.log(density)).sum()
        assert float(output.losses[row]) == pytest.approx(expected)
        mean = float((np.exp(log_weights[row, action]) * means[row, action]).sum())
        assert float(output.values[row]) == pytest.approx(mean)
        assert float(output.priorities[row]) == pytest.approx(abs(float(target.mean()[row]) - mean))


@pytest.mark.parametrize("atoms", [2, 8, 21])
def test_the_atoms_of_a_mixture_have_its_mean_and_variance(parts, atoms):
    head = build(parts.GaussianMixture, components=3, atoms_per_component=atoms)
    features = torch.randn(5, 4, dtype=torch.float64)
    distribution = head.distribution(features, midpoint_taus)
    assert distribution.atoms.shape == (5, 3, 3 * atoms)
    log_weights, means, sigmas = head.mixture(features)
    weights = log_weights.exp()
    mean = (weights * means).sum(dim=-1)
    variance = (weights * (sigmas.square() + means.square())).sum(dim=-1) - mean.square()
    torch.testing.assert_close(distribution.mean(), mean)
    torch.testing.assert_close(distribution.std(), variance.sqrt(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(distribution.probs.sum(dim=-1), torch.ones(5, 3, dtype=torch.float64))


def test_a_mixture_learns_a_distribution_with_two_modes(parts):
    target = two_modes()
    learned = fit(build(parts.GaussianMixture, components=2), target, steps=200, rate=0.03)
    assert float(learned.mean()) == pytest.approx(float(target.mean()), abs=0.01)
    assert float(learned.std()) == pytest.approx(float(target.std()), rel=0.01)
    assert float(learned.cdf([0.0])) == pytest.approx(1 / 3, abs=0.01)  # between the modes


# Expectiles


def test_the_expectile_loss_is_least_at_the_expectiles_of_the_target(parts):
    from quantail_example_plugin.expectiles import expectile_loss

    target, taus = sampled(3, 9), torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    best = [
        [stats.expectile(z.numpy(), float(tau), weights=p.numpy()) for tau in taus]
        for z, p in zip(target.atoms, target.probs, strict=True)
    ]
    predictions = torch.tensor(best, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(expectile_loss(predictions, taus, target).sum(), predictions)
    assert slope.abs().max() < 1e-6
    moved = (predictions + 0.1).detach().requires_grad_()
    (slope,) = torch.autograd.grad(expectile_loss(moved, taus, target).sum(), moved)
    assert slope.min() > 1e-3


def gumbel():
    return ReturnDistribution(torch.from_numpy(stats.gumbel_r.ppf(MIDPOINTS))[None])


@pytest.mark.parametrize("target", [gumbel, two_modes])
def test_the_imputed_distribution_has_the_expectiles_and_nearly_the_spread(parts, target):
    from quantail_example_plugin.expectiles import impute

    returns, taus = target(), (torch.arange(11, dtype=torch.float64) + 0.5) / 11
    wanted = torch.tensor([expectile(returns, float(tau)) for tau in taus], dtype=torch.float64)
    imputed = impute(wanted[None], taus)
    assert imputed.atoms.shape == imputed.probs.shape == (1, 10)
    assert (imputed.probs >= 0).all()
    assert float(imputed.probs.sum()) == pytest.approx(1)
    assert float(imputed.mean()) == pytest.approx(float(returns.mean()))
    for tau, value in zip(taus.tolist(), wanted.tolist(), strict=True):
        assert expectile(imputed, tau) == pytest.approx(value, abs=1e-6)
    assert float(imputed.std()) == pytest.approx(float(returns.std()), rel=0.05)
    # The expectiles as if they were samples of the return, which they are not.
    assert float(wanted.std()) < 0.75 * float(returns.std())


@pytest.mark.parametrize("seed", range(5))
def test_expectiles_of_no_distribution_are_imputed_with_their_mean(parts, seed):
    from quantail_example_plugin.expectiles import impute

    generator = torch.Generator().manual_seed(seed)
    steps = torch.rand(40, 7, dtype=torch.float64, generator=generator)
    steps[0] = 0.0  # a deterministic return
    expectiles = steps.cumsum(dim=1)
    taus = (torch.arange(7, dtype=torch.float64) + 0.5) / 7
    imputed = impute(expectiles, taus)
    torch.testing.assert_close(imputed.mean(), expectiles[:, 3])
    assert (imputed.probs >= 0).all()
    assert imputed.atoms.isfinite().all()
    assert (imputed.atoms.diff(dim=1) >= 0).all()
    assert float(imputed.std()[0]) == 0


def test_the_head_learns_the_expectiles_of_its_target(parts):
    target = two_modes()
    learned = fit(build(parts.Expectiles, count=5), target, steps=600, rate=0.02)
    for tau in (0.1, 0.3, 0.5, 0.7, 0.9):
        assert expectile(learned, tau) == pytest.approx(expectile(target, tau), abs=0.01)


def test_an_even_number_of_expectiles_is_refused(parts):
    with pytest.raises(ValueError, match="odd number"):
        parts.Expectiles.Config(count=4)


# The other parts


def test_the_lstm_reads_the_stack_in_order_and_its_features_may_be_negative(parts):
    torch.manual_seed(0)
    torso = parts.LSTMTorso(
        ObservationSpec.array((2, 3), "uint8", "vector", stack=4), parts.LSTMTorso.Config(5)
    )
    observations = torch.randint(0, 256, (8, 4, 2, 3), dtype=torch.uint8)
    features = torso(observations)
    assert features.shape == (8, torso.num_features) == (8, 5)
    assert not torch.allclose(features, torso(observations.flip(1)))
    assert (features < 0).any()
    assert not torso.nonnegative


@pytest.mark.parametrize("probs", [None, (0.5, 0.2, 0.1, 0.2)])
def test_spread_is_the_mean_less_a_share_of_its_distance_to_the_tail(parts, probs):
    atoms = (4.0, -3.0, 1.0, 0.0)
    p = probs or (0.25,) * 4
    mean = sum(x * y for x, y in zip(atoms, p, strict=True))
    tail = (-3.0 * p[1] + 0.0 * (0.3 - p[1])) / 0.3  # the worst 30 %: all of −3 and some of 0
    z = ReturnDistribution.of(atoms, probs)
    assert float(parts.Spread(0.3, 0.5).value(z)) == pytest.approx(mean - 0.5 * (mean - tail))
    assert float(parts.Spread(0.3, 0.0).value(z)) == pytest.approx(mean)
    assert parts.Spread(0.3, 0.5).annealed(0.5) == parts.Spread(0.3, 0.25)
    assert parts.Spread(0.3, 0.5).annealed(2.0) == parts.Spread(0.3, 0.5)
    for wrong in ((0.0, 0.5), (0.3, 1.5)):
        with pytest.raises(QuantailError, match="takes a fraction α from 1e-6 to 1"):
            parts.Spread(*wrong)


@pytest.mark.parametrize("double", [False, True])
def test_the_softmax_target_mixes_the_next_distributions_by_the_policy(parts, double):
    class Identity(torch.nn.Module):
        def forward(self, observations):
            return observations

    networks = [ReturnNetwork(Identity(), build(parts.Expectiles, count=3)) for _ in range(2)]
    online, target = networks
    torch.nn.init.normal_(online.head.f[2].weight, std=0.5)
    after = torch.randn(5, 4, dtype=torch.float64)
    mask = torch.tensor([[True, True, True]] * 4 + [[True, False, True]])
    batch = Batch(
        observations=after,
        actions=torch.zeros(5, dtype=torch.int64),
        rewards=torch.arange(5.0, dtype=torch.float64),
        discounts=torch.tensor([0.9, 0.9, 0.0, 0.5, 0.9], dtype=torch.float64),
        next_observations=after,
        weights=torch.ones(5),
        indices=torch.arange(5),
        next_masks=mask,
    )
    config = parts.SoftmaxTarget.Config(double=double, temperature=0.3)
    mixed = parts.SoftmaxTarget(config)(batch, online, target, Neutral(), midpoint_taus)
    assert mixed.atoms.shape == (5, 3 * 2)
    means, chosen = (
        net.head.distribution(after, midpoint_taus).mean().detach().numpy()
        for net in (target, online if double else target)
    )
    for row in range(5):
        weights = np.exp(chosen[row] / 0.3) * mask[row].numpy()
        policy = weights / weights.sum()
        following = float((policy * means[row]).sum())
        expected = float(batch.rewards[row]) + float(batch.discounts[row]) * following
        assert float(mixed.mean()[row].detach()) == pytest.approx(expected)


@pytest.mark.parametrize("head", ["GaussianMixture", "Expectiles"])
@pytest.mark.parametrize("target", ["bellman", "SoftmaxTarget"])
def test_the_heads_learn_from_several_arrays_and_respect_masks(parts, head, target, tmp_path):
    chosen = getattr(parts, target, target)
    given = TINY | {"n_step": 1 if chosen != target else 2, "num_envs": 2, "workers": 2}
    settings = {"agent": "qr-dqn", "head": getattr(parts, head), "target": chosen, "steps": 120}
    trained = quantail.train(Shop, out=tmp_path / "run", **given, **settings)
    observation, info = Shop().reset(seed=0)
    allowed = info["action_mask"].astype(bool)
    action = trained.act(observation, mask=allowed)
    assert allowed[np.ravel_multi_index(tuple(action), (3, 2))]
