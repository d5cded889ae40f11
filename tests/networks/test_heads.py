import itertools
import math

import numpy as np
import pytest
import torch

from quantail.networks.heads import HEADS
from quantail.networks.layers import NoisyLinear, initialise
from quantail.risk import CPW, Custom, CVaR, Neutral, Norm, Pow, Wang
from quantail.spaces import ObservationSpec
from quantail.taus import midpoint_taus, midpoints
from tests.helpers.configs import build_network, config
from tests.helpers.learners import given

VECTOR = ObservationSpec.array((5,), "float32", "vector")
ACTIONS = 3


def network(head, seed=0, **changes):
    settings = config(
        head=head, head_size=16, mlp_sizes=(16,), quantiles=8, atoms=11, policy_samples=64, **changes
    )
    return build_network(settings, VECTOR, ACTIONS, seed).double()


def features(net, batch=4, seed=0):
    x = torch.randn(batch, 5, generator=torch.Generator().manual_seed(seed))
    return torch.relu(x.double() @ net.torso.layers[1].weight.T + net.torso.layers[1].bias)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("head", HEADS)
def test_every_head_answers_each_level_by_itself_and_every_weight_gets_a_gradient(head, dueling, noisy):
    net = network(head, dueling=dueling, noisy=noisy)
    net.draw_noise(np.random.default_rng(0))
    psi, taus = features(net), torch.rand(4, 6).double()
    returns = net.head.quantiles(psi, taus)
    assert returns.shape == (4, 6, ACTIONS)
    for row, column in itertools.product(range(4), range(6)):
        alone = net.head.quantiles(psi[row : row + 1], taus[row : row + 1, column : column + 1])
        torch.testing.assert_close(returns[row, column], alone[0, 0], rtol=1e-5, atol=1e-9)
    learned = net.head.distribution(psi, midpoint_taus)
    learned.mean().sum().backward()
    for name, parameter in net.head.named_parameters():
        if "proposal" not in name and not (dueling and name.startswith("f.2")):
            assert parameter.grad is not None, name


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("head", ["expected", "categorical", "quantiles", "fractions", "hl-gauss"])
def test_heads_with_fixed_atoms_have_quantiles_that_never_fall(head, dueling):
    net = network(head, dueling=dueling)
    taus = torch.linspace(0, 1, 101).double().expand(4, -1)
    assert (net.head.quantiles(features(net), taus).diff(dim=1) >= 0).all()


@pytest.mark.parametrize("risk", [Neutral(), CVaR(0.3), Wang(0.5)], ids=str)
@pytest.mark.parametrize("head", HEADS)
def test_the_value_of_every_head_is_the_mean_of_its_quantiles_through_the_distortion(head, risk):
    net = network(head)
    psi = features(net)
    many = midpoints(20_000, torch.float64).expand(4, -1)
    value = net.head.value(psi, risk, given(many))
    expected = net.head.quantiles(psi, risk(many)).mean(dim=1)
    torch.testing.assert_close(value, expected, rtol=0, atol=2e-3)


EVERY_KIND = [Neutral(), CPW(0.71), Wang(-0.75), Pow(-2), CVaR(0.3), Norm(3), Custom(lambda t: t**2)]


@pytest.mark.parametrize("risk", EVERY_KIND, ids=str)
@pytest.mark.parametrize("head", HEADS)
def test_the_value_of_every_head_has_the_gradient_of_finite_differences_in_the_features(
    head, risk, monkeypatch
):
    # So that differences can be as small as 1e-6.
    monkeypatch.setattr("quantail.risk.inversion.HALVINGS", 52)
    net = network(head)
    psi = features(net, batch=2).requires_grad_()
    taus = torch.rand(2, 8, generator=torch.Generator().manual_seed(1)).double()
    assert torch.autograd.gradcheck(
        lambda x: net.head.value(x, risk, given(taus)), psi, eps=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("head", HEADS)
def test_values_and_law_together_are_what_they_are_apart(head):
    net = network(head)
    psi, few, more = features(net), torch.rand(4, 3).double(), torch.rand(4, 5).double()
    values, distribution = net.head.value_and_distribution(psi, CVaR(0.5), given(few, more))
    torch.testing.assert_close(values, net.head.value(psi, CVaR(0.5), given(few)))
    torch.testing.assert_close(distribution.atoms, net.head.distribution(psi, given(more)).atoms)


def test_the_categorical_law_is_a_softmax_over_an_even_support():
    net = network("categorical", value_min=-2.0, value_max=3.0)
    psi = features(net)
    distribution = net.head.distribution(psi, midpoint_taus)
    assert distribution.atoms[0, 0].tolist() == pytest.approx(np.linspace(-2, 3, 11).tolist())
    logits = net.head.f(psi).view(4, 11, ACTIONS)
    for row, action in itertools.product(range(4), range(ACTIONS)):
        one = [math.exp(float(x)) for x in logits[row, :, action].detach()]
        assert distribution.probs[row, action].tolist() == pytest.approx([x / sum(one) for x in one])


def test_fractions_rise_from_zero_to_one_and_each_atom_has_the_chance_between_two():
    net = network("fractions")
    psi = features(net)
    fractions = net.head.fractions(psi)
    assert fractions.shape == (4, 9)
    assert (fractions[:, 0] == 0).all()
    assert (fractions[:, -1] == 1).all()
    torch.testing.assert_close(fractions.diff(dim=1), torch.full((4, 8), 1 / 8).double())  # at the start
    with torch.no_grad():
        net.head.proposal.weight.normal_(generator=torch.Generator().manual_seed(0))
    fractions = net.head.fractions(psi)
    assert (fractions.diff(dim=1) > 0).all()
    shares = torch.softmax(net.head.proposal(psi), dim=1)
    distribution = net.head.distribution(psi, midpoint_taus)
    torch.testing.assert_close(distribution.probs[:, 0], shares, rtol=1e-6, atol=1e-9)
    levels = (fractions[:, :-1] + fractions[:, 1:]) / 2
    torch.testing.assert_close(
        distribution.atoms, net.head.implicit.quantiles(psi, levels).transpose(1, 2)
    )


# Dueling


def test_dueling_of_the_mean_is_value_plus_advantage_less_its_mean_with_a_scaled_gradient():
    net = network("expected", dueling=True)
    psi = features(net).detach().requires_grad_()
    value, advantage = net.head.v(psi), net.head.f(psi)
    plain = value + advantage - advantage.sum(dim=1, keepdim=True) / ACTIONS
    torch.testing.assert_close(net.head.expected(psi), plain)
    (unscaled,) = torch.autograd.grad(plain.square().sum(), psi)
    (scaled,) = torch.autograd.grad(net.head.expected(psi).square().sum(), psi)
    torch.testing.assert_close(scaled, unscaled / math.sqrt(2))


def test_dueling_of_a_categorical_law_acts_on_logits_atom_by_atom_as_in_rainbow():
    net = network("categorical", dueling=True)
    psi = features(net)
    value, advantage = net.head.v(psi), net.head.f(psi).view(4, 11, ACTIONS)
    logits = value[:, :, None] + advantage - advantage.mean(dim=2, keepdim=True)
    torch.testing.assert_close(
        net.head.distribution(psi, midpoint_taus).probs, torch.softmax(logits, dim=1).transpose(1, 2)
    )


def rising_streams(head):
    """A dueling head whose value is flat and of whose advantages one rises steeply with the level."""
    net = network(head, dueling=True, embedding="linear")
    with torch.no_grad():
        for layer in (net.head.f, net.head.v):
            for parameter in layer.parameters():
                parameter.zero_()
        if head == "quantiles":
            steps = torch.zeros(8, ACTIONS).double()
            steps[:, 1] = 10 * torch.arange(8)
            net.head.f[2].bias.copy_(steps.flatten())
        else:
            net.head.phi[0].weight.fill_(1.0)
            net.head.f[0].weight.fill_(1.0)
            net.head.f[2].weight[1] = 1.0
    return net


@pytest.mark.parametrize("head", ["quantiles", "implicit"])
def test_dueling_never_makes_a_quantile_function_fall_where_its_streams_do_not(head):
    """Taking away the mean over actions level by level would make the flat action fall."""
    net = rising_streams(head)
    psi = features(net).abs() + 0.1
    taus = torch.linspace(0.05, 0.95, 19).double().expand(4, -1)
    returns = net.head.quantiles(psi, taus)
    assert (returns.diff(dim=1) >= -1e-9).all()
    assert (returns[:, -1, 1] - returns[:, 0, 1] > 1).all()


def test_dueling_of_fixed_quantiles_leaves_the_mean_over_actions_to_the_value_stream():
    net = network("quantiles", dueling=True)
    psi = features(net)
    value, advantage = net.head.v(psi), net.head.f(psi).view(4, 8, ACTIONS)
    expected = value[:, :, None] + advantage - advantage.mean(dim=(1, 2), keepdim=True)
    atoms = net.head.distribution(psi, midpoint_taus).atoms
    torch.testing.assert_close(atoms, expected.transpose(1, 2))
    torch.testing.assert_close(atoms.mean(dim=(1, 2)), value.mean(dim=1))


def test_dueling_of_implicit_quantiles_leaves_the_median_over_actions_to_the_value_stream():
    net = network("implicit", dueling=True)
    psi, taus = features(net), torch.tensor([[0.1, 0.5, 0.8]]).double().expand(4, -1)
    merged = psi.unsqueeze(1) * net.head.phi(taus)
    value, advantage = net.head.v(merged), net.head.f(merged)
    expected = value + advantage - advantage[:, 1:2].mean(dim=2, keepdim=True)
    returns = net.head.quantiles(psi, taus)
    torch.testing.assert_close(returns, expected)
    torch.testing.assert_close(returns[:, 1].mean(dim=1), value[:, 1, 0])


# Noise


def noisy_layer(inputs=6, outputs=4, sigma=0.5):
    layer = NoisyLinear(inputs, outputs, sigma).double()
    initialise(layer, torch.Generator().manual_seed(0))
    return layer


def test_noise_is_factorised_one_vector_for_inputs_and_one_for_outputs():
    layer = noisy_layer()
    layer.draw(np.random.default_rng(3))
    drawn = np.random.default_rng(3).standard_normal(10, dtype=np.float32).astype(float)
    f = np.sign(drawn) * np.sqrt(np.abs(drawn))
    layer.requires_grad_(False)
    x = torch.randn(20, 6).double()
    out = layer(x)
    for row, j in itertools.product(range(20), range(4)):
        total = float(layer.bias[j] + layer.bias_sigma[j] * f[j])
        for i in range(6):
            weight = float(layer.weight[j, i] + layer.weight_sigma[j, i] * f[j] * f[4 + i])
            total += weight * float(x[row, i])
        assert float(out[row, j]) == pytest.approx(total, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("rows", [(1,), (8,), (9,), (2, 3), (5, 30)])
def test_noise_gives_the_same_answer_for_few_rows_as_for_many(rows):
    layer = noisy_layer()
    layer.draw(np.random.default_rng(1))
    x = torch.randn(*rows, 6).double()
    many = layer(x.reshape(-1, 6).repeat(20, 1))[: x[..., 0].numel()]
    torch.testing.assert_close(layer(x).reshape(-1, 4), many)


def test_noise_starts_at_sigma_over_root_fan_in_for_weights_and_biases_and_averages_out():
    layer = noisy_layer(sigma=0.4)
    assert layer.weight_sigma.unique().tolist() == pytest.approx([0.4 / math.sqrt(6)])
    assert layer.bias_sigma.unique().tolist() == pytest.approx([0.4 / math.sqrt(6)])
    x, rng = torch.randn(1, 6).double(), np.random.default_rng(0)
    answers = []
    for _ in range(4000):
        layer.draw(rng)
        answers.append(layer(x).detach())
    layer.noise = None
    answers = torch.cat(answers)
    error = answers.std(dim=0) / math.sqrt(4000)
    assert ((answers.mean(dim=0) - layer(x)[0]).abs() < 5 * error).all()
    # E f(ε)² = E|ε| = √(2/π), for inputs and outputs alike.
    once = math.sqrt(2 / math.pi)
    variance = (0.4**2 / 6) * once * (1 + once * x.square().sum())
    torch.testing.assert_close(answers.var(dim=0), variance.expand(4), rtol=0.15, atol=0)


def test_dropped_noise_is_the_mean_network_and_noise_reaches_only_the_heads_own_layers():
    net = network("implicit", noisy=True, dueling=True)
    psi, taus = features(net), torch.rand(4, 5).double()
    quiet = net.head.quantiles(psi, taus)
    net.draw_noise(np.random.default_rng(0))
    first = net.head.quantiles(psi, taus)
    net.draw_noise(np.random.default_rng(1))
    assert not torch.allclose(first, net.head.quantiles(psi, taus))
    assert not torch.allclose(first, quiet)
    net.drop_noise()
    assert torch.equal(net.head.quantiles(psi, taus), quiet)
    kinds = {name for name, layer in net.named_modules() if isinstance(layer, NoisyLinear)}
    assert kinds == {"head.f.0", "head.f.2", "head.v.0", "head.v.2"}


def test_fractions_never_fall_in_single_precision():
    net = network("fractions").float()
    with torch.no_grad():
        net.head.proposal.weight.normal_(std=20, generator=torch.Generator().manual_seed(0))
    psi = torch.rand(2000, 16, generator=torch.Generator().manual_seed(1))
    assert (torch.softmax(net.head.proposal(psi), dim=1).cumsum(dim=1)[:, :-1] > 1).any()
    assert (net.head.fractions(psi).diff(dim=1) >= 0).all()
    assert net.head.value(psi, Wang(-0.75), midpoint_taus).isfinite().all()
