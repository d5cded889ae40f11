"""The compiled kernels: the values and gradients of torch in float64, to the rounding of float32."""

import copy
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from quantail.distributions import ReturnDistribution
from quantail.networks import kernels
from quantail.networks.heads import HeadSpec
from quantail.networks.heads.implicit import ImplicitConfig, ImplicitQuantiles
from quantail.networks.kernels import functions
from quantail.networks.layers import initialise, linear_layers
from quantail.networks.losses import quantile_huber_loss
from quantail.networks.torsos import TORSOS
from quantail.part_config import NoConfig
from quantail.spaces import ObservationSpec

ROUNDING = 3e-6  # relative to the largest entry; one rounding is 6e-8, and sums have hundreds of terms


def build_head(features=128, units=128, cosines=64, actions=3, sigma=0.0, dueling=False, **config):
    linear = linear_layers(sigma)
    spec = HeadSpec(features, actions, units, linear=linear, dueling=dueling, nonnegative=True)
    head = ImplicitQuantiles(spec, ImplicitConfig(embedding_size=cosines, **config))
    initialise(head, torch.Generator().manual_seed(3))
    return head


def draw(batch, features, count, active=0.5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    psi = torch.randn(batch, features, generator=generator).relu()
    psi *= torch.rand(batch, features, generator=generator) < 2 * active
    return psi, torch.rand(batch, count, generator=generator)


def oracle(head, psi, taus):
    """The formula of the appendix, dense, in the dtype of its arguments."""
    cosines = torch.cos(torch.pi * taus.unsqueeze(-1) * torch.arange(1, head.config.embedding_size + 1))
    phi = torch.relu(head.phi.linear(cosines))
    return head.f[2](torch.relu(head.f[0](psi.unsqueeze(1) * phi)))


def gradients(head, psi, returns, upstream):
    return torch.autograd.grad(returns, [psi, *head.parameters()], upstream)


def assert_close(found, expected, tolerance=ROUNDING):
    assert float((found - expected).abs().max()) <= tolerance * float(
        expected.abs().max().clamp(min=1e-6)
    )


SHAPES = [
    # batch, features, units, cosines, actions, samples, active share of the features
    (32, 1024, 128, 64, 3, 16, 0.46),
    (32, 1024, 128, 64, 3, 8, 0.2),
    (5, 64, 64, 32, 2, 7, 0.5),  # vectors of 8 lanes, and a number of samples that is no multiple of 8
    (1, 128, 128, 64, 1, 1, 0.5),
    (3, 77, 192, 16, 18, 33, 0.9),
    (2, 300, 512, 64, 4, 64, 0.05),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients_are_those_of_float64(shape):
    batch, features, units, cosines, actions, count, active = shape
    head = build_head(features, units, cosines, actions)
    exact = copy.deepcopy(head).double()
    psi, taus = draw(batch, features, count, active)
    assert head.use_kernels()
    psi.requires_grad_()
    returns = head.quantiles(psi, taus)
    psi64 = psi.detach().double().requires_grad_()
    expected = oracle(exact, psi64, taus.double())
    assert_close(returns, expected)
    upstream = torch.randn(returns.shape, generator=torch.Generator().manual_seed(1))
    found = gradients(head, psi, returns, upstream)
    wanted = list(gradients(exact, psi64, expected, upstream.double()))
    wanted[0] = wanted[0] * (psi64 > 0)  # behind the ReLU that ψ ends in
    for mine, one in zip(found, wanted, strict=True):
        assert_close(mine, one)


def test_the_kernel_gives_the_same_bits_with_and_without_gradients_and_in_any_batch():
    head = build_head()
    psi, taus = draw(9, 128, 12)
    assert head.use_kernels()
    kept = head.quantiles(psi, taus).detach()
    with torch.no_grad():
        assert torch.equal(kept, head.quantiles(psi, taus))
        assert torch.equal(kept[4:6], head.quantiles(psi[4:6], taus[4:6]))


def test_shares_for_threads_add_up(monkeypatch):
    head = build_head()
    psi, taus = draw(7, 128, 8)
    assert head.use_kernels()
    psi.requires_grad_()
    whole = head.quantiles(psi, taus)
    alone = gradients(head, psi, whole, torch.ones_like(whole))
    monkeypatch.setattr(functions, "WORTH_THREADS", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    shared = head.quantiles(psi, taus)
    assert torch.equal(shared, whole)
    with torch.no_grad():
        assert torch.equal(head.quantiles(psi, taus), whole)
    for mine, one in zip(gradients(head, psi, shared, torch.ones_like(shared)), alone, strict=True):
        assert_close(mine, one)


def test_a_state_without_features_has_the_value_of_the_biases():
    head = build_head()
    assert head.use_kernels()
    psi, taus = draw(3, 128, 8)
    psi[1] = 0
    returns = head.quantiles(psi, taus)
    assert_close(returns[1], head.f[2](torch.relu(head.f[0].bias)).expand(8, 3))
    returns.sum().backward()
    assert all(one.grad.isfinite().all() for one in head.parameters())


@pytest.mark.parametrize("where", ["features", "weights"])
def test_what_is_not_finite_is_not_hidden_as_a_zero(where):
    head = build_head()
    assert head.use_kernels()
    psi, taus = draw(2, 128, 8)
    if where == "features":
        psi[0, 5] = float("nan")
    else:
        head.phi.linear.bias.data[int(psi[0].argmax())] = float("nan")
    assert head.quantiles(psi, taus)[0].isnan().any()


@pytest.mark.parametrize(
    "changes",
    [
        {"dueling": True},
        {"sigma": 0.5},
        {"units": 100},
        {"cosines": 20},
        {"merge": "residual"},
        {"embedding": "mlp"},
        {"embedding_activation": "sigmoid"},
    ],
)
def test_a_head_that_the_kernel_does_not_fit_stays_with_torch(changes):
    head = build_head(**changes)
    psi, taus = draw(2, 128, 8)
    expected = head.quantiles(psi, taus)
    assert head.use_kernels()  # that of the loss
    assert torch.equal(head.quantiles(psi, taus), expected)


def test_other_dtypes_and_learned_fractions_use_torch():
    head = build_head()
    assert head.use_kernels()
    psi, taus = draw(2, 128, 8)
    taus.requires_grad_()
    (of_taus,) = torch.autograd.grad(head.quantiles(psi, taus).sum(), taus)
    assert of_taus.abs().sum() > 0
    assert head.double().quantiles(psi.double(), taus.double()).dtype == torch.float64


@pytest.mark.parametrize("wrong", ["psi", "taus", "dtype", "batch"])
def test_what_does_not_fit_is_refused_before_memory_is_read(wrong):
    head = build_head()
    assert head.use_kernels()
    psi, taus = draw(2, 127 if wrong == "psi" else 128, 8)
    taus = {"taus": taus[0], "dtype": taus.double(), "batch": taus[:1]}.get(wrong, taus)
    layers = [(layer.weight, layer.bias) for layer in head.linear_layers]
    with pytest.raises((TypeError, ValueError)):
        functions.head_quantiles(psi, taus, *layers)


def test_layers_of_another_memory_order_are_read_right():
    head = build_head()
    assert head.use_kernels()
    psi, taus = draw(3, 128, 8)
    expected = head.quantiles(psi, taus)
    for layer in head.linear_layers:
        layer.weight.data = layer.weight.data.t().contiguous().t()
    torch.testing.assert_close(head.quantiles(psi, taus), expected, rtol=0, atol=0)
    head.f[0].weight.data = head.f[0].weight.data.contiguous()
    torch.testing.assert_close(head.quantiles(psi, taus), expected, rtol=0, atol=0)


def test_without_numba_or_with_a_broken_one_there_are_no_kernels(monkeypatch, capsys):
    for broken in (False, True):
        kernels.load_kernels.cache_clear()
        with monkeypatch.context() as patch:
            if broken:
                patch.setattr(kernels, "import_module", lambda name: 1 / 0)
            else:
                patch.setattr(kernels.util, "find_spec", lambda name: None)
            assert kernels.load_kernels() is None
            assert not build_head().use_kernels()
        assert ("cannot be used" in capsys.readouterr().err) == broken
    kernels.load_kernels.cache_clear()
    assert kernels.load_kernels() is not None


@pytest.mark.parametrize(("height", "width", "channels"), [(10, 10, 4), (3, 3, 1), (5, 8, 7)])
def test_the_convolution_is_that_of_float64(height, width, channels):
    spec = ObservationSpec.array((height, width, channels), "float32", "hwc", 1)
    torso = TORSOS["minatar"](spec, NoConfig())
    initialise(torso, torch.Generator().manual_seed(0))
    exact = copy.deepcopy(torso).double().layers[1]
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(6, 1, height, width, channels, generator=generator)
    images *= torch.rand(images.shape, generator=generator) < 0.2
    assert torso.use_kernels()
    features = torso(images)
    expected = torch.relu(F.conv2d(torso.layers[0](images).double(), exact.weight, exact.bias)).flatten(
        1
    )
    assert_close(features, expected)
    upstream = torch.randn(features.shape, generator=generator)
    found = torch.autograd.grad(features, list(torso.parameters()), upstream)
    wanted = torch.autograd.grad(expected, [exact.weight, exact.bias], upstream.double())
    for mine, one in zip(found, wanted, strict=True):
        assert_close(mine, one)
    with torch.no_grad():
        np.testing.assert_array_equal(torso(images), features.detach())


def test_the_convolution_takes_a_gradient_that_is_a_part_of_a_larger_one():
    torso = TORSOS["minatar"](ObservationSpec.array((12, 12, 3), "uint8", "hwc"), NoConfig())
    initialise(torso, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    images = torch.randint(256, (8, 12, 12, 3), dtype=torch.uint8, generator=generator)

    def gradients():
        beside = torch.cat([torso(images), torch.ones(8, 5)], dim=1)
        return torch.autograd.grad(beside.square().sum(), list(torso.parameters()))

    expected = gradients()
    assert torso.use_kernels()
    for found, wanted in zip(gradients(), expected, strict=True):
        assert_close(found, wanted, 1e-4)


@pytest.mark.parametrize("kappa", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("sizes", [(4, 5, 3), (64, 8, 8), (32, 200, 200), (3, 1, 7), (2, 9, 1)])
def test_the_quantile_huber_loss_is_that_of_float64(sizes, kappa):
    batch, count, others = sizes
    generator = torch.Generator().manual_seed(0)
    predictions, taus = torch.randn(2, batch, count, generator=generator)
    targets, weights = 3 * torch.randn(2, batch, others, generator=generator)
    weights = weights.softmax(dim=1)

    def of(dtype, compiled):
        given = [one.to(dtype, copy=True).requires_grad_() for one in (predictions, taus.sigmoid())]
        rest = [one.to(dtype) for one in (targets, weights)]
        losses = quantile_huber_loss(*given, rest[0], kappa, rest[1], compiled)
        scale = torch.linspace(-1, 2, batch, dtype=dtype)
        return losses, *torch.autograd.grad((scale * losses).sum(), given)

    for mine, one in zip(of(torch.float32, True), of(torch.float64, False), strict=True):
        assert_close(mine, one, 2e-6)


def test_the_loss_of_a_prediction_that_is_not_a_number_is_not_one():
    for kappa in (0.0, 1.0):
        predictions = torch.tensor([[0.0, float("nan")], [0.0, 1.0]])
        losses = quantile_huber_loss(
            predictions, torch.full((2, 2), 0.5), torch.ones(2, 3), kappa, compiled=True
        )
        assert losses.isnan().tolist() == [True, False]


@pytest.mark.parametrize("wrong", ["taus", "targets", "weights", "dtype"])
def test_a_loss_whose_parts_do_not_fit_is_refused(wrong):
    shapes = {"predictions": (4, 3), "taus": (4, 3), "targets": (4, 5), "weights": (4, 5)}
    if wrong in shapes:
        shapes[wrong] = (5, 3)
    parts = {name: torch.ones(shape) for name, shape in shapes.items()}
    if wrong == "dtype":
        parts["targets"] = parts["targets"].double()
    with pytest.raises((TypeError, RuntimeError)):
        functions.quantile_huber_slopes(*parts.values(), 1.0)


def test_kernels_do_not_depend_on_torchs_default_dtype():
    head = build_head()
    assert head.use_kernels()
    psi, taus = draw(4, 128, 8)
    actions, target = torch.tensor([0, 1, 2, 0]), ReturnDistribution(torch.randn(4, 8))

    def losses():
        head.zero_grad()
        found = head.loss(psi, actions, target, lambda *_: taus).losses
        found.sum().backward()
        return [found.detach(), *(one.grad.clone() for one in head.parameters())]

    expected = losses()
    torch.set_default_dtype(torch.float64)
    try:
        found = losses()
    finally:
        torch.set_default_dtype(torch.float32)
    for mine, one in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, one, rtol=0, atol=0)


def test_targets_of_another_dtype_leave_the_loss_to_torch():
    generator = torch.Generator().manual_seed(0)
    predictions, targets = torch.randn(2, 3, 4, generator=generator)
    given = (predictions, torch.full((3, 4), 0.3), targets.double(), 1.0)
    expected = quantile_huber_loss(*given)
    torch.testing.assert_close(quantile_huber_loss(*given, compiled=True), expected, rtol=0, atol=0)


@pytest.mark.parametrize("cached", [False, True])
def test_compiling_is_announced_only_if_the_cache_has_no_present_kernel(cached, tmp_path, capsys):
    kernel = functions.quantile_huber
    source = Path(kernel.py_func.__code__.co_filename)
    index = tmp_path / f"losses.{kernel.py_func.__qualname__}-9.py311.nbi"
    index.touch()
    if not cached:  # the source has changed since
        os.utime(index, (0, source.stat().st_mtime - 1))
    stats = SimpleNamespace(cache_path=str(tmp_path))
    kernels._announce_once.cache_clear()
    for _ in range(2):
        kernels.announce(SimpleNamespace(py_func=kernel.py_func, stats=stats))
    said = "quantail: compiling kernels, about 10 s, once on this machine\n"
    assert capsys.readouterr().err == ("" if cached else said)
