import numpy as np
import pytest
import torch
from scipy import stats

from quantail.networks.distributions import ReturnDistribution
from quantail.risk import CPW, CVaR, Neutral, Norm, Pow, Wang, parse_risk

MEASURES = [CPW(0.71), CVaR(0.3), CVaR(1.0), Norm(3), Pow(-2), Pow(1.5), Wang(-0.75), Wang(0.75)]
OWN = parse_risk(lambda tau: tau**2)
CUT = parse_risk(lambda tau: np.clip(np.asarray(tau.detach()) * 1.25, 0, 1))  # without a graph


def some(kind, batch=3, atoms=7, actions=2, seed=0):
    g = torch.Generator().manual_seed(seed)
    values = 3 * torch.randn(batch, atoms, actions, generator=g, dtype=torch.float64)
    if kind == "equal":
        return ReturnDistribution(values)
    shape = (batch, atoms, 1 if kind == "shared" else actions)
    weights = torch.rand(shape, generator=g, dtype=torch.float64) ** 3
    return ReturnDistribution(values, weights / weights.sum(dim=1, keepdim=True))


def distributions_of(distribution):
    """For each state and action, the atoms in rising order and their probabilities, in plain Python."""
    batch, atoms, actions = distribution.atoms.shape
    weights = (
        torch.full_like(distribution.atoms, 1 / atoms)
        if distribution.weights is None
        else distribution.weights
    )
    weights = weights.expand(batch, atoms, actions)
    for row in range(batch):
        for action in range(actions):
            pairs = zip(
                distribution.atoms[row, :, action].tolist(),
                weights[row, :, action].tolist(),
                strict=True,
            )
            yield row, action, sorted(pairs)


def quantile(pairs, tau):
    total = 0.0
    for value, probability in pairs:
        total += probability
        if total >= tau - 1e-12:
            return value
    return pairs[-1][0]


@pytest.mark.parametrize("kind", ["equal", "shared", "own"])
def test_a_quantile_is_the_least_atom_whose_cumulated_chance_reaches_the_level(kind):
    distribution = some(kind)
    taus = torch.tensor([0.01, 0.2, 0.5, 0.77, 0.99], dtype=torch.float64)
    answer = distribution.quantiles(taus.expand(3, -1))
    for row, action, pairs in distributions_of(distribution):
        assert answer[row, :, action].tolist() == [quantile(pairs, t) for t in taus.tolist()]
    assert (distribution.quantiles(torch.rand(3, 50).double().sort(dim=1).values).diff(dim=1) >= 0).all()


@pytest.mark.parametrize("kind", ["equal", "shared", "own"])
@pytest.mark.parametrize("risk", [Neutral(), *MEASURES, OWN], ids=str)
def test_the_value_under_a_risk_is_the_integral_of_the_distorted_quantile_function(kind, risk):
    distribution = some(kind)
    levels = risk((torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000).tolist()
    value = distribution.value(risk)
    for row, action, pairs in distributions_of(distribution):
        probabilities = np.cumsum([probability for _, probability in pairs])
        index = np.searchsorted(probabilities, levels).clip(max=len(pairs) - 1)
        integral = np.array([atom for atom, _ in pairs])[index].mean()
        assert float(value[row, action]) == pytest.approx(integral, abs=3e-3)


def test_a_point_mass_has_the_same_value_under_every_measure():
    distribution = ReturnDistribution(torch.tensor([[[2.5, -1.0]]]))
    for risk in MEASURES:
        assert distribution.value(risk).tolist() == [[2.5, -1.0]]
    assert distribution.quantiles(torch.tensor([[0.0, 0.5, 1.0]]))[0, :, 0].tolist() == [2.5] * 3


@pytest.mark.parametrize("risk", [Neutral(), *MEASURES, OWN], ids=str)
@pytest.mark.parametrize("kind", ["shared", "own"])
def test_in_single_precision_a_peaked_law_has_a_value_under_every_measure(kind, risk):
    """Probabilities that add up to a little more than 1 must not reach a map beyond its domain."""
    g = torch.Generator().manual_seed(0)
    logits = 5 * torch.randn(400, 51, 1 if kind == "shared" else 3, generator=g)
    weights = torch.softmax(logits, dim=1)
    assert (weights.cumsum(dim=1) > 1).any()
    atoms = torch.linspace(-10, 10, 51).view(1, 51, 1).expand(400, 51, 3)
    value = ReturnDistribution(atoms, weights).value(risk)
    exact = ReturnDistribution(
        atoms.double(), weights.double() / weights.double().sum(dim=1, keepdim=True)
    ).value(risk)
    torch.testing.assert_close(value.double(), exact, rtol=0, atol=1e-2)


@pytest.mark.parametrize("eta", [1.5, 3.0, 5.0])
def test_a_rare_upper_tail_counts_under_a_measure_that_seeks_it(eta):
    """Cumulated in float32, the atoms on the right would have no probability at all."""
    logits = torch.full((1, 51, 1), 0.0)
    logits[:, 35:] = -18.0
    probabilities = torch.softmax(logits, dim=1)
    atoms = torch.linspace(-10, 10, 51).view(1, 51, 1)
    z, p = atoms.double().flatten().numpy(), torch.softmax(logits.double(), dim=1).flatten().numpy()
    # β⁻¹ from above, by the survival function, so that no digits of the tail are lost.
    above = p[::-1].cumsum()[::-1]  # P(Z >= z_i)
    shares = stats.norm.sf(stats.norm.isf(above) - eta)
    exact = float((z * -np.diff(np.append(shares, 0.0))).sum())
    value = float(ReturnDistribution(atoms, probabilities).value(Wang(eta)))
    assert value == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("risk", [Neutral(), *MEASURES, CPW(3.0), OWN, CUT], ids=str)
@pytest.mark.parametrize("kind", ["equal", "shared", "own"])
def test_the_gradient_of_a_value_is_that_of_finite_differences(kind, risk):
    distribution = some(kind, batch=2, atoms=5)
    inputs = (
        [distribution.atoms]
        if distribution.weights is None
        else [distribution.atoms, distribution.weights.log()]
    )

    def value(atoms, logits=None):
        weights = None if logits is None else torch.softmax(logits, dim=1)
        return ReturnDistribution(atoms, weights).value(risk)

    inputs = [tensor.clone().requires_grad_() for tensor in inputs]
    assert value(*inputs).requires_grad
    assert torch.autograd.gradcheck(value, inputs, eps=1e-4, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("risk", [*MEASURES, CPW(3.0), OWN], ids=str)
def test_probabilities_that_are_exactly_zero_have_a_finite_gradient(risk):
    logits = torch.tensor([[-300.0, 0.0, 1.0, -300.0]]).unsqueeze(2).requires_grad_()
    weights = torch.softmax(logits, dim=1)
    assert (weights == 0).sum() == 2
    ReturnDistribution(torch.tensor([-1.0, 0.0, 1.0, 2.0]).view(1, 4, 1), weights).value(
        risk
    ).sum().backward()
    assert logits.grad.isfinite().all()


def test_values_do_not_depend_on_the_order_of_atoms():
    distribution = some("own")
    order = torch.randperm(7)
    turned = ReturnDistribution(distribution.atoms[:, order], distribution.weights[:, order])
    for risk in (Neutral(), CVaR(0.2)):
        torch.testing.assert_close(distribution.value(risk), turned.value(risk))
