"""The one return distribution, against plain loops, scipy and finite differences."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from quantail.distributions import ReturnDistribution
from quantail.risk import CPW, CVaR, Entropic, MeanStd, Neutral, Norm, Pow, Prospect, Wang, parse_risk

MEASURES = [CPW(0.71), CVaR(0.3), CVaR(1.0), Norm(3), Pow(-2), Pow(1.5), Wang(-0.75), Wang(0.75)]
OWN = parse_risk(lambda tau: tau**2)
CUT = parse_risk(lambda tau: np.clip(np.asarray(tau.detach()) * 1.25, 0, 1))  # without a graph
OTHERS = [MeanStd(0.5), Entropic(0.7), Entropic(-0.4), Prospect()]
KINDS = ["equal", "shared", "own"]


def some(kind, batch=3, atoms=7, actions=2, seed=0):
    """Random distributions [batch, actions, atoms] with equal, shared or own probabilities."""
    g = torch.Generator().manual_seed(seed)
    values = 3 * torch.randn(batch, actions, atoms, generator=g, dtype=torch.float64)
    if kind == "equal":
        return ReturnDistribution(values)
    shape = (batch, 1 if kind == "shared" else actions, atoms)
    weights = torch.rand(shape, generator=g, dtype=torch.float64) ** 3
    return ReturnDistribution(values, weights / weights.sum(dim=-1, keepdim=True))


def pairs_of(z):
    """For each state and action, sorted pairs of atom and probability, in plain Python."""
    batch, actions, _ = z.atoms.shape
    probs = z.probabilities()
    for row in range(batch):
        for action in range(actions):
            found = zip(z.atoms[row, action].tolist(), probs[row, action].tolist(), strict=True)
            yield row, action, sorted(found)


def quantile(pairs, tau):
    total = 0.0
    for value, probability in pairs:
        total += probability
        if total >= tau - 1e-12:
            return value
    return pairs[-1][0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_quantile_is_the_least_atom_whose_cumulated_probability_reaches_tau(kind):
    z = some(kind)
    taus = torch.tensor([0.01, 0.2, 0.5, 0.77, 0.99], dtype=torch.float64)
    answer = z.quantile(taus)
    assert answer.shape == (3, 2, 5)
    for row, action, pairs in pairs_of(z):
        assert answer[row, action].tolist() == [quantile(pairs, t) for t in taus.tolist()]
    own = z.quantile(torch.rand(3, 1, 50).double().sort(dim=-1).values)  # τ of each state
    assert (own.diff(dim=-1) >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_cdf_mean_and_std_are_those_of_a_plain_sum(kind):
    z = some(kind)
    x = torch.linspace(-6, 6, 9, dtype=torch.float64)
    for row, action, pairs in pairs_of(z):
        below = [sum(p for value, p in pairs if value <= at) for at in x.tolist()]
        assert z.cdf(x)[row, action].tolist() == pytest.approx(below)
        mean = sum(p * value for value, p in pairs)
        assert float(z.mean()[row, action]) == pytest.approx(mean)
        spread = math.sqrt(sum(p * (value - mean) ** 2 for value, p in pairs))
        assert float(z.std()[row, action]) == pytest.approx(spread)
        exact = sum(p * math.exp(value) for value, p in pairs)
        assert float(z.expectation(torch.exp)[row, action]) == pytest.approx(exact)


def test_the_cdf_at_an_atom_contains_it():
    z = ReturnDistribution.of([1.0, 2.0, 2.0, 5.0])
    assert z.cdf(torch.tensor([0.9, 1.0, 2.0, 5.0]).double()).tolist() == [0, 0.25, 0.75, 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("risk", [Neutral(), *MEASURES, OWN], ids=str)
def test_the_value_under_a_distortion_is_the_integral_of_the_distorted_quantile_function(kind, risk):
    z = some(kind)
    fractions = risk((torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000).tolist()
    value = risk.value(z)
    for row, action, pairs in pairs_of(z):
        cumulated = np.cumsum([probability for _, probability in pairs])
        index = np.searchsorted(cumulated, fractions).clip(max=len(pairs) - 1)
        integral = np.array([atom for atom, _ in pairs])[index].mean()
        assert float(value[row, action]) == pytest.approx(integral, abs=3e-3)


def test_a_point_mass_has_the_same_value_under_every_distortion():
    z = ReturnDistribution(torch.tensor([[[2.5], [-1.0]]]))
    for risk in MEASURES:
        assert risk.value(z).tolist() == [[2.5, -1.0]]
    assert z.quantile(torch.tensor([0.0, 0.5, 1.0]))[0, 0].tolist() == [2.5] * 3


def test_plain_numbers_are_taken_in_double_precision():
    tenths = ReturnDistribution.of([k / 10 for k in range(1, 11)])
    # In single precision 0.1 and 0.7 would lie above and below the atoms and steps of the same name.
    assert tenths.quantile([0.1, 0.7]).tolist() == [0.1, 0.7]
    assert tenths.cdf([0.1, 0.7]).tolist() == pytest.approx([0.1, 0.7])


@pytest.mark.parametrize("risk", [Neutral(), *MEASURES, OWN], ids=str)
@pytest.mark.parametrize("kind", ["shared", "own"])
def test_in_single_precision_a_peaked_distribution_has_a_value_under_every_measure(kind, risk):
    """Probabilities that add up to a little more than 1 must not reach a map beyond its domain."""
    g = torch.Generator().manual_seed(0)
    logits = 5 * torch.randn(400, 1 if kind == "shared" else 3, 51, generator=g)
    probs = torch.softmax(logits, dim=-1)
    assert (probs.cumsum(dim=-1) > 1).any()
    atoms = torch.linspace(-10, 10, 51).expand(400, 3, 51)
    value = risk.value(ReturnDistribution(atoms, probs))
    exact = ReturnDistribution(atoms.double(), probs.double() / probs.double().sum(-1, keepdim=True))
    torch.testing.assert_close(value.double(), risk.value(exact), rtol=0, atol=1e-2)


@pytest.mark.parametrize("eta", [1.5, 3.0, 5.0])
def test_a_rare_upper_tail_counts_under_a_measure_that_seeks_it(eta):
    """Cumulated in float32, the atoms on the right would have no probability at all."""
    logits = torch.full((1, 1, 51), 0.0)
    logits[..., 35:] = -18.0
    atoms = torch.linspace(-10, 10, 51)
    z, p = atoms.double().numpy(), torch.softmax(logits.double(), dim=-1).flatten().numpy()
    # β⁻¹ from above, by the survival function, so that no digits of the tail are lost.
    above = p[::-1].cumsum()[::-1]  # P(Z >= z_i)
    shares = stats.norm.sf(stats.norm.isf(above) - eta)
    exact = float((z * -np.diff(np.append(shares, 0.0))).sum())
    value = Wang(eta).value(ReturnDistribution(atoms.expand(1, 1, 51), torch.softmax(logits, dim=-1)))
    assert float(value) == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("risk", [Neutral(), *MEASURES, CPW(3.0), OWN, CUT, *OTHERS], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_of_a_value_is_that_of_finite_differences(kind, risk):
    z = some(kind, batch=2, atoms=5)
    inputs = [z.atoms] if z.probs is None else [z.atoms, z.probs.log()]

    def value(atoms, logits=None):
        probs = None if logits is None else torch.softmax(logits, dim=-1)
        return risk.value(ReturnDistribution(atoms, probs))

    inputs = [tensor.clone().requires_grad_() for tensor in inputs]
    assert value(*inputs).requires_grad
    assert torch.autograd.gradcheck(value, inputs, eps=1e-4, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("risk", [*MEASURES, CPW(3.0), OWN, *OTHERS], ids=str)
def test_probabilities_that_are_exactly_zero_have_a_finite_gradient(risk):
    logits = torch.tensor([[[-300.0, 0.0, 1.0, -300.0]]]).requires_grad_()
    probs = torch.softmax(logits, dim=-1)
    assert (probs == 0).sum() == 2
    risk.value(ReturnDistribution(torch.tensor([[[-1.0, 0.0, 1.0, 2.0]]]), probs)).sum().backward()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("risk", [Neutral(), CVaR(0.2), *OTHERS], ids=str)
def test_values_do_not_depend_on_the_order_of_atoms(risk):
    z = some("own")
    order = torch.randperm(7)
    turned = ReturnDistribution(z.atoms[..., order], z.probs[..., order])
    torch.testing.assert_close(risk.value(z), risk.value(turned))


# Transformations


def test_an_affine_map_moves_every_atom():
    z = some("own")
    shift, scale = torch.randn(3, 2).double(), torch.rand(3, 2).double()
    moved = z.affine(shift, scale)
    torch.testing.assert_close(moved.mean(), shift + scale * z.mean())
    torch.testing.assert_close(moved.std(), scale * z.std())
    torch.testing.assert_close(z.affine(1.0, 0.5).mean(), 1 + 0.5 * z.mean())


@pytest.mark.parametrize("kind", KINDS)
def test_selecting_actions_keeps_their_atoms_and_probabilities(kind):
    z, actions = some(kind), torch.tensor([1, 0, 1])
    chosen = z.select(actions)
    for row, action in enumerate(actions.tolist()):
        assert torch.equal(chosen.atoms[row], z.atoms[row, action])
        assert torch.equal(chosen.probabilities()[row], z.probabilities()[row, action])


def test_a_true_mixture_has_every_atom_of_every_action():
    z, policy = some("own"), torch.softmax(torch.randn(3, 2).double(), dim=1)
    shift = torch.randn(3, 2).double()
    mixed = z.mixture(policy, shift)
    assert mixed.atoms.shape == (3, 14)
    torch.testing.assert_close(mixed.probabilities().sum(-1), torch.ones(3).double())
    torch.testing.assert_close(mixed.mean(), (policy * (z.mean() + shift)).sum(dim=1))
    second = (policy * (z.affine(shift, 1.0).expectation(torch.square))).sum(dim=1)
    torch.testing.assert_close(mixed.expectation(torch.square), second)


@pytest.mark.parametrize("kind", ["equal", "shared"])
def test_a_mixture_of_comonotone_actions_is_taken_fraction_by_fraction(kind):
    z = some(kind)
    z = ReturnDistribution(z.atoms, z.probs, comonotone=True)
    policy, shift = torch.softmax(torch.randn(3, 2).double(), dim=1), torch.randn(3, 2).double()
    mixed = z.mixture(policy, shift)
    expected = sum(policy[:, a, None] * (z.atoms[:, a] + shift[:, a, None]) for a in range(2))
    torch.testing.assert_close(mixed.atoms, expected)
    assert torch.equal(mixed.probabilities(), z.probabilities()[:, 0])


@pytest.mark.parametrize("comonotone", [False, True])
def test_an_action_of_probability_zero_drops_out_of_a_mixture(comonotone):
    z = ReturnDistribution(some("equal").atoms, comonotone=comonotone)
    policy = torch.tensor([[1.0, 0.0]] * 3).double()
    shift = torch.tensor([[0.5, math.inf]] * 3).double()  # −τ log 0
    mixed = z.mixture(policy, shift)
    torch.testing.assert_close(mixed.mean(), z.atoms[:, 0].mean(dim=-1) + 0.5)


# Distances

NUMBERS = st.lists(st.integers(-8, 8).map(lambda n: n / 2), min_size=1, max_size=6)


@given(NUMBERS, NUMBERS)
def test_the_first_wasserstein_and_the_cramer_distance_are_scipys(a, b):
    one, other = ReturnDistribution.of(a), ReturnDistribution.of(b)
    assert float(one.wasserstein(other)) == pytest.approx(stats.wasserstein_distance(a, b), abs=1e-9)
    # scipy's energy distance is √2 times the Cramér distance.
    assert float(one.cramer(other)) == pytest.approx(stats.energy_distance(a, b) / 2**0.5, abs=1e-9)


@pytest.mark.parametrize("p", [1, 2, 3.5, math.inf])
def test_wasserstein_distances_are_those_of_quantile_functions_on_a_fine_grid(p):
    one, other = some("own", seed=1), some("own", atoms=4, seed=2)
    taus = (torch.arange(200_000, dtype=torch.float64) + 0.5) / 200_000
    gap = (one.quantile(taus) - other.quantile(taus)).abs()
    fine = gap.amax(-1) if math.isinf(p) else (gap**p).mean(-1) ** (1 / p)
    torch.testing.assert_close(one.wasserstein(other, p), fine, rtol=1e-3, atol=1e-4)


def test_distances_broadcast_over_batches_and_vanish_for_equal_distributions():
    z = some("own")
    one = ReturnDistribution(z.atoms[0, 0], z.probs[0, 0])
    assert one.wasserstein(z).shape == (3, 2)
    assert float(one.wasserstein(z)[0, 0]) == 0
    assert float(one.cramer(ReturnDistribution(one.atoms.flip(0), one.probs.flip(0)))) == 0
    assert float(one.wasserstein(one.affine(1.5, 1.0), math.inf)) == pytest.approx(1.5)


def test_an_order_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        some("equal").wasserstein(some("equal"), 0.5)


def test_the_maximal_distance_is_not_that_of_rounded_probabilities():
    one = ReturnDistribution.of([0.0, 0.0, 5.0], [0.1, 0.2, 0.7])
    other = ReturnDistribution.of([0.0, 5.0], [0.3, 0.7])
    assert 0.1 + 0.2 != 0.3
    assert float(one.wasserstein(other, math.inf)) == 0


def test_the_spread_of_a_point_mass_is_zero_and_has_a_finite_gradient():
    atoms = torch.full((2, 3), 1.5, requires_grad=True)
    z = ReturnDistribution(atoms)
    assert z.std().tolist() == [0.0, 0.0]
    MeanStd(0.5).value(z).sum().backward()
    assert atoms.grad.isfinite().all()
