"""The residual torso of IMPALA, and how settings reach a torso."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from quantail.errors import QuantailError
from quantail.networks.network import seeded
from quantail.networks.torsos import TORSOS, ImpalaCNN
from quantail.networks.torsos.impala import ImpalaConfig
from quantail.recipes import compose
from quantail.spaces import ObservationSpec
from tests.helpers.configs import build_network, build_torso, config

ATARI = ObservationSpec.array((84, 84), "uint8", "hw", 4)
MINATAR = ObservationSpec.array((10, 10, 6), "bool", "hwc")
VECTOR = ObservationSpec.array((5,), "float32", "vector")
FLOATS = ObservationSpec.array((3, 7, 10), "float32", "chw")


def impala(spec, width=1):
    return seeded(lambda: build_torso(config(torso="impala", impala_width=width), spec), 0)


def by_hand(torso, images):
    """The network of figure 3 from its weights, with convolutions and maxima over explicit patches."""
    parameters = iter(torso.parameters())

    def patches(x, outside):  # [B, C, H, W] -> [B, C, 9, H, W]
        height, width = x.shape[2:]
        padded = F.pad(x, (1, 1, 1, 1), value=outside)
        return torch.stack(
            [padded[:, :, i : i + height, j : j + width] for i in range(3) for j in range(3)], dim=2
        )

    def convolved(x):
        weight, bias = next(parameters), next(parameters)
        found = torch.einsum("bckhw,ock->bohw", patches(x, 0.0), weight.flatten(2))
        return found + bias[:, None, None]

    x = images
    for _ in range(3):
        x = patches(convolved(x), -torch.inf).amax(dim=2)[:, :, ::2, ::2]
        for _ in range(2):
            x = x + convolved(convolved(x.clamp(min=0)).clamp(min=0))
    assert next(parameters, None) is None
    return x.clamp(min=0).flatten(1)


@pytest.mark.parametrize("width", [1, 2])
def test_impala_is_its_papers_network_computed_by_hand(width):
    torso = impala(FLOATS, width).double()
    images = torch.randn(3, 3, 7, 10, generator=torch.Generator().manual_seed(1)).double()
    torso.layers[0] = torch.nn.Identity()  # it would give float32
    torch.testing.assert_close(torso(images), by_hand(torso, images), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("spec", "width", "features"),
    [(ATARI, 1, 32 * 11 * 11), (ATARI, 2, 64 * 11 * 11), (MINATAR, 1, 32 * 2 * 2), (FLOATS, 1, 32 * 2)],
)
def test_impala_halves_the_sides_three_times_and_its_width_multiplies_the_channels(
    spec, width, features
):
    torso = impala(spec, width)
    shape, dtype = spec.tree.input_shape, spec.tree.dtype
    images = np.random.default_rng(0).integers(0, 2, (2, *shape)).astype(dtype)
    assert torso.num_features == features
    assert torso(torch.from_numpy(images)).shape == (2, features)


def test_impala_takes_images_of_one_pixel_and_refuses_vectors():
    assert impala(ObservationSpec.array((1, 1, 3), "uint8", "hwc")).num_features == 32
    with pytest.raises(QuantailError, match="torso impala takes images; the observation is a vector"):
        impala(VECTOR)


def test_every_weight_of_impala_gets_a_gradient_through_the_head_and_features_are_nonnegative():
    network = build_network(config(torso="impala", head_size=16), MINATAR, 3)
    images = torch.rand(8, 10, 10, 6, generator=torch.Generator().manual_seed(0))
    features = network.features(images)
    assert network.torso.nonnegative
    assert network.head.sparse
    assert (features >= 0).all()
    assert (features == 0).any()
    network(images, torch.rand(8, 4)).square().sum().backward()
    for name, parameter in network.torso.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    ("shape", "layout", "name"),
    [
        ((84, 84), "hw", "nature"),
        ((36, 40, 3), "hwc", "nature"),
        ((3, 35, 40), "chw", "minatar"),
        ((10, 10, 6), "hwc", "minatar"),
        ((5,), "vector", "mlp"),
        ((5,), "one-hot", "mlp"),
    ],
)
def test_auto_chooses_the_torso_by_the_observation(shape, layout, name):
    spec = ObservationSpec.array(shape, "uint8", layout)
    assert type(build_torso(config(), spec)) is TORSOS[name]


def test_a_torsos_config_is_filled_from_the_settings_of_the_same_names():
    assert build_torso(config(mlp_sizes=(7, 3)), VECTOR).config.mlp_sizes == (7, 3)
    built = build_torso(config(torso="impala", impala_width=3), MINATAR)
    assert type(built) is ImpalaCNN
    assert built.config == ImpalaConfig(impala_width=3)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"nature_channels": "16,32,32"}, "nature_channels has no effect here: it is used only with"),
        ({"torso": "nature", "nature_channels": "16,32"}, "nature_channels takes three whole numbers"),
        ({"torso": "nature", "nature_channels": "16,0,32"}, "nature_channels"),
        ({"impala_width": 2}, "impala_width has no effect here: it is used only with torso impala"),
        ({"torso": "impala", "mlp_sizes": (8,)}, "only with torso auto or mlp, and torso is impala"),
        ({"torso": "impala", "impala_width": 0}, "impala_width takes a whole number of at least 1"),
        ({"torso": "imapla"}, "Did you mean 'impala'"),
    ],
    ids=str,
)
def test_settings_of_another_torso_are_refused(changes, says):
    with pytest.raises(QuantailError, match=says):
        compose("minatar", changes)


@pytest.mark.parametrize("torso", ["nature", "impala"])
@pytest.mark.parametrize("spec", [ATARI, ObservationSpec.array((40, 40, 3), "uint8", "hwc", 2)], ids=str)
def test_images_in_another_order_of_memory_give_the_same_features(torso, spec):
    built = seeded(lambda: build_torso(config(torso=torso), spec), 0)
    images = np.random.default_rng(0).integers(0, 256, (3, *spec.tree.input_shape)).astype(np.uint8)
    learning = built(torch.from_numpy(images))
    with torch.no_grad():
        acting = built(torch.from_numpy(images))
    by_hand = torch.from_numpy(images).double() / 255
    by_hand = by_hand.movedim(-1, 2).flatten(1, 2) if spec.tree.layout == "hwc" else by_hand
    with torch.no_grad():
        exact = built.double()
        exact.layers[0] = torch.nn.Identity()
        expected = exact(by_hand)
    for found in (learning, acting):
        torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-6)


def test_the_channels_of_nature_are_a_setting():
    torso = build_torso(config(torso="nature", nature_channels="8,16,24"), ATARI)
    shapes = [tuple(one.shape) for one in torso.parameters() if one.dim() == 4]
    assert shapes == [(8, 4, 8, 8), (16, 8, 4, 4), (24, 16, 3, 3)]
    images = torch.zeros((2, *ATARI.tree.input_shape), dtype=torch.uint8)
    assert torso(images).shape == (2, torso.num_features) == (2, 24 * 7 * 7)


@pytest.mark.parametrize("spec", [ATARI, ObservationSpec.array((40, 40, 3), "uint8", "hwc")], ids=str)
def test_the_users_images_stay_as_they_are_also_as_floats(spec):
    built = seeded(lambda: build_torso(config(torso="nature"), spec), 0)
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (2, *spec.tree.input_shape)))
    for given in (images.to(torch.uint8), images.float()):
        before = given.clone()
        with torch.no_grad():
            first = built(given)
        assert torch.equal(given, before)
        torch.testing.assert_close(built(given), first)
    saliency = images.float().requires_grad_()
    built(saliency).sum().backward()
    assert saliency.grad.abs().sum() > 0
