import itertools

import numpy as np
import pytest
import torch
from torch import nn

from quantail.errors import QuantailError
from quantail.networks.embeddings import Cosine, Embedding
from quantail.networks.network import seeded
from quantail.networks.torsos import MLP
from quantail.networks.torsos.mlp import MLPConfig
from quantail.spaces import ObservationSpec
from tests.helpers.configs import build_network, build_torso, config

ATARI = ObservationSpec.array((84, 84), "uint8", "hw", 4)
MINATAR = ObservationSpec.array((10, 10, 6), "bool", "hwc")
VECTOR = ObservationSpec.array((5,), "float32", "vector")


def some(spec, batch=3, seed=0):
    rng = np.random.default_rng(seed)
    return torch.from_numpy((255 * rng.random((batch, *spec.tree.input_shape))).astype(spec.tree.dtype))


def torso(spec, name="auto"):
    return build_torso(config(torso=name), spec)


@pytest.mark.parametrize(
    ("embedding", "size", "activation", "merge"),
    list(
        itertools.product(
            ["cosine", "mlp", "linear"],
            [32, 64],
            ["relu", "sigmoid"],
            ["multiply", "concatenate", "residual"],
        )
    ),
)
def test_every_variant_of_the_papers_appendix_runs_and_every_weight_gets_a_gradient(
    embedding, size, activation, merge
):
    settings = config(
        embedding=embedding, embedding_size=size, embedding_activation=activation, merge=merge
    )
    network = build_network(settings, VECTOR, 3)
    returns = network(some(VECTOR, 32) / 255, torch.rand(32, 7))
    assert returns.shape == (32, 7, 3)
    returns.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in network.parameters())


@pytest.mark.parametrize("spec", [ATARI, MINATAR, VECTOR], ids=["atari", "minatar", "vector"])
def test_each_level_is_answered_by_itself(spec):
    """A τ on the wrong axis, or rows that mix, would change an answer with its neighbours."""
    network = build_network(config(head_size=32), spec, 4, seed=1)
    observations, taus = some(spec), torch.rand(3, 5)
    together = network(observations, taus)
    for row, column in itertools.product(range(3), range(5)):
        alone = network(observations[row : row + 1], taus[row : row + 1, column : column + 1])
        torch.testing.assert_close(together[row, column], alone[0, 0], rtol=1e-4, atol=1e-6)


def test_the_network_is_the_papers_formula():
    torch.manual_seed(0)
    network = build_network(config(head_size=16), VECTOR, 2, seed=3).double()
    x, taus = torch.randn(4, 5, dtype=torch.float64), torch.rand(4, 3, dtype=torch.float64)
    psi = (
        torch.relu(x @ network.torso.layers[1].weight.T + network.torso.layers[1].bias).float().double()
    )
    w, b = network.head.phi[1].weight, network.head.phi[1].bias
    first, last = network.head.f[0], network.head.f[2]
    for row, column in itertools.product(range(4), range(3)):
        cosines = torch.stack([torch.cos(torch.pi * i * taus[row, column]) for i in range(1, 65)])
        phi = torch.relu(w @ cosines + b)
        hidden = torch.relu(first.weight @ (psi[row] * phi) + first.bias)
        expected = last.weight @ hidden + last.bias
        actual = network.head.quantiles(psi, taus)[row, column]
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)  # float32 frequencies


def test_cosines_count_from_one_so_that_no_feature_is_constant():
    features = Cosine(64)(torch.tensor([[0.0], [0.5], [1.0]]))
    assert features.shape == (3, 64)
    expected = torch.tensor([(-1.0) ** i for i in range(1, 65)])
    torch.testing.assert_close(features[2], expected, rtol=0, atol=1e-4)
    assert (Cosine(64)(torch.rand(1000, 1)).std(dim=0) > 0.5).all()


def test_an_embedding_does_not_depend_on_the_shape_of_its_batch():
    phi = Embedding("cosine", 64, "relu", 10)
    taus = torch.rand(4, 6)
    torch.testing.assert_close(phi(taus)[2, 3], phi(taus[2:3, 3:4])[0, 0])


def test_features_are_computed_once_however_many_levels_are_asked():
    network = build_network(config(head_size=32), ATARI, 4)
    calls = []
    network.torso.layers[1].register_forward_hook(
        lambda module, inputs, output: calls.append(len(inputs[0]))
    )
    network(some(ATARI), torch.rand(3, 96))
    assert calls == [3]


def test_the_atari_torso_has_the_papers_3136_features_and_the_minatar_one_1024():
    assert torso(ATARI).num_features == 3136
    assert torso(MINATAR).num_features == 1024
    assert torso(ATARI)(some(ATARI)).shape == (3, 3136)
    assert torso(MINATAR)(some(MINATAR)).shape == (3, 1024)


def test_bytes_are_scaled_by_255_once_and_floats_not_at_all():
    entrance = torso(ATARI).layers[0]
    white = torch.full((1, 4, 84, 84), 255, dtype=torch.uint8)
    assert entrance(white).unique().tolist() == [1.0]
    floats = ObservationSpec.array((84, 84), "float32", "hw", 4)
    again = torso(floats).layers[0]
    assert again(white.float() / 255).unique().tolist() == [1.0]
    assert torso(MINATAR).layers[0](torch.ones(1, 10, 10, 6)).max() == 1


def test_channels_are_found_in_either_layout_and_stacks_keep_their_order():
    last = ObservationSpec.array((12, 10, 3), "uint8", "hwc", 2)
    first = ObservationSpec.array((3, 12, 10), "uint8", "chw", 2)
    images = some(last)  # [batch, stack, h, w, c]
    there, here = torso(last).layers[0], torso(first).layers[0]
    torch.testing.assert_close(there(images), here(images.movedim(-1, -3)))
    torch.testing.assert_close(there(images)[:, 4], images[:, 1, :, :, 1] / 255)


def test_weights_and_biases_start_uniform_within_one_over_root_fan_in():
    network = build_network(config(), ATARI, 4, seed=5)
    for layer, fan_in in (
        (network.torso.layers[1], 4 * 64),
        (network.head.f[0], 3136),
        (network.head.phi[1], 64),
    ):
        bound = fan_in**-0.5
        for tensor in (layer.weight, layer.bias):
            assert tensor.abs().max() <= bound
            assert tensor.abs().max() > 0.9 * bound
        assert float(layer.weight.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.03)


def test_the_seed_alone_decides_the_weights():
    torch.manual_seed(1)
    a = build_network(config(), VECTOR, 2, seed=7).state_dict()
    torch.manual_seed(2)
    b = build_network(config(), VECTOR, 2, seed=7).state_dict()
    c = build_network(config(), VECTOR, 2, seed=8).state_dict()
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert not all(torch.equal(a[k], c[k]) for k in a)


class Recurrent(nn.Module):
    """Layers that the paper's initialisation does not know."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4)
        self.embedding = nn.Embedding(5, 3)
        self.scale = nn.Parameter(torch.rand(2))
        self.linear = nn.Linear(3, 3)


def test_every_layer_is_drawn_from_its_parts_seed_and_the_global_generator_is_left_alone():
    torch.manual_seed(123)
    before = torch.get_rng_state()
    first = seeded(Recurrent, 1).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(7)
    again, other = seeded(Recurrent, 1).state_dict(), seeded(Recurrent, 2).state_dict()
    for name, value in first.items():
        assert torch.equal(value, again[name]), name
        assert not torch.equal(value, other[name]), name


def test_a_heads_weights_do_not_depend_on_the_torso():
    heads = [
        build_network(config(mlp_sizes=sizes, head_size=8), VECTOR, 2, seed=3).head.state_dict()
        for sizes in ((16,), (32, 16))
    ]
    for name, value in heads[0].items():
        assert torch.equal(value, heads[1][name]), name


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("nature", VECTOR),
        ("nature", MINATAR),
        ("minatar", ObservationSpec.array((2, 9, 3), "uint8", "hwc")),
    ],
)
def test_a_torso_that_does_not_fit_the_observation_is_refused(name, spec):
    with pytest.raises(QuantailError, match=f"torso {name} takes images"):
        torso(spec, name)


def test_an_mlp_without_layers_hands_on_the_observation_and_does_not_call_it_nonnegative():
    plain = MLP(VECTOR, MLPConfig(mlp_sizes=()))
    assert (plain.num_features, plain.nonnegative) == (5, False)
    x = torch.randn(3, 5)
    assert torch.equal(plain(x), x)
    assert MLP(VECTOR, MLPConfig()).nonnegative
