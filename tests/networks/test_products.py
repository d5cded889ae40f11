"""The product that skips zeros, against the same formula written out and left to autograd."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from quantail.networks import ReturnNetwork, products
from quantail.networks.layers import NoisyLinear, initialise
from quantail.networks.products import merged_linear
from quantail.networks.torsos import Torso
from quantail.part_config import NoConfig
from quantail.recipes import compose
from quantail.spaces import ObservationSpec
from tests.helpers.configs import build_head, build_network

BATCH, LEVELS, COSINES, FEATURES = 7, 5, 6, 40
DEAD = [3, 11, 12, *range(20, 38)]  # zero for every state


def example(dead=DEAD):
    torch.manual_seed(0)
    kind = {"dtype": torch.float64}
    raw = torch.randn(BATCH, FEATURES, **kind)
    raw[:, ::3] *= 1e-6  # small ones, whose gradient is not
    raw[:, dead] = -1.0
    basis = torch.randn(BATCH, LEVELS, COSINES, **kind)
    shapes = [(FEATURES, COSINES), (FEATURES,), (9, FEATURES), (9,), (4, FEATURES), (4,)]
    leaves = [raw, basis, *(torch.randn(shape, **kind) for shape in shapes)]
    return [leaf.requires_grad_() for leaf in leaves]


def written_out(raw, basis, slope, offset, w, b, w2, b2):
    merged = torch.relu(raw).unsqueeze(1) * torch.relu(basis @ slope.T + offset)
    return merged @ w.T + b, merged @ w2.T + b2


def skipping(raw, basis, slope, offset, w, b, w2, b2):
    return merged_linear(torch.relu(raw), basis, (slope, offset), [(w, b), (w2, b2)])


@pytest.mark.parametrize("dead", [DEAD, [], list(range(FEATURES))], ids=["some", "none", "all"])
@pytest.mark.parametrize("chunk", [1, 2 * LEVELS, 3 * LEVELS + 1, 1000])
@pytest.mark.parametrize("worth", [0, 10**9], ids=["gathered", "dense"])
def test_outputs_and_every_gradient_are_those_of_autograd(monkeypatch, dead, chunk, worth):
    monkeypatch.setattr(products, "CHUNK", chunk)
    monkeypatch.setattr(products, "MIN_SKIPPED", worth)
    leaves = example(dead)
    upstream = [torch.randn_like(output) for output in written_out(*leaves)]
    results = []
    for function in (written_out, skipping):
        outputs = function(*leaves)
        results.append([*outputs, *torch.autograd.grad(outputs, leaves, upstream)])
    for expected, found in zip(*results, strict=True):
        assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_without_gradients_the_outputs_are_the_same(monkeypatch):
    monkeypatch.setattr(products, "CHUNK", 2 * LEVELS)
    monkeypatch.setattr(products, "MIN_SKIPPED", 0)
    leaves = example()
    with torch.no_grad():
        for expected, found in zip(written_out(*leaves), skipping(*leaves), strict=True):
            assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_features_are_left_out_where_that_pays_and_kept_in_aligned_numbers():
    psi = torch.rand(32, 100)
    psi[:, :50] = 0
    psi[7, 3] = 1.0  # zero for all states but one: it stays
    keep = products._worth_keeping(psi, count=8)
    assert len(keep) == 64  # 51 of them, filled up
    assert {3, *range(50, 100)} <= set(keep.tolist())
    assert len(set(keep.tolist())) == 64
    assert products._worth_keeping(psi, count=2) is None
    assert products._worth_keeping(torch.rand(32, 100), count=64) is None


@pytest.mark.parametrize("embedding", ["cosine", "mlp", "linear"])
@pytest.mark.parametrize("parts", [{}, {"dueling": True}, {"noisy": True, "dueling": True}], ids=str)
def test_a_head_learns_the_same_as_without_it(monkeypatch, embedding, parts):
    monkeypatch.setattr(products, "MIN_SKIPPED", 0)
    settings = compose("minatar", {"embedding": embedding, **parts})
    head = build_head(settings, FEATURES, num_actions=3, nonnegative=True).double()
    initialise(head, torch.Generator().manual_seed(0))
    for layer in head.modules():
        if isinstance(layer, NoisyLinear):
            layer.draw(np.random.default_rng(0))
    raw, taus = example()[0], torch.rand(BATCH, LEVELS, dtype=torch.float64)
    results = []
    for sparse in (False, True):
        head.sparse = sparse
        returns = head.quantiles(torch.relu(raw), taus)
        gradients = torch.autograd.grad((returns**2).sum(), [raw, *head.parameters()])
        results.append([returns, *gradients])
    for expected, found in zip(*results, strict=True):
        assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_chunks_cover_the_batch_and_none_has_more_rows_than_a_chunk_may():
    for batch, count in ((32, 96), (7, 5), (3, 5000), (1, 1), (0, 8)):
        chunks = products._chunks(batch, count)
        covered = [state for states in chunks for state in range(states.start, states.stop)]
        assert covered == list(range(batch))
        assert all((c.stop - c.start) * count <= max(products.CHUNK, count) for c in chunks)


def test_without_gradients_no_more_than_a_chunk_is_held(monkeypatch):
    monkeypatch.setattr(products, "CHUNK", 2 * LEVELS)
    leaves, held = example(), []
    allocate = torch.Tensor.new_empty
    monkeypatch.setattr(
        torch.Tensor, "new_empty", lambda self, *shape: held.append(shape[0]) or allocate(self, *shape)
    )
    with torch.inference_mode():
        skipping(*leaves)
    assert held[0] == 2
    skipping(*leaves)
    assert held[3] == BATCH


def test_a_head_skips_zeros_where_rows_are_many_and_does_not_where_they_are_few():
    head = build_head(compose("minatar", {}), FEATURES, num_actions=3, nonnegative=True)
    initialise(head, torch.Generator().manual_seed(0))

    def functions(batch, levels):
        returns = head.quantiles(torch.rand(batch, FEATURES), torch.rand(batch, levels))
        found, open_ones = set(), [returns.grad_fn]
        while open_ones:
            node = open_ones.pop()
            found.add(type(node).__name__)
            open_ones += [following for following, _ in node.next_functions if following]
        return found

    assert "_MergedLinearBackward" in functions(32, 8)
    assert "_MergedLinearBackward" not in functions(1, 32)


def test_levels_that_are_not_contiguous_get_their_own_gradient(monkeypatch):
    monkeypatch.setattr(products, "MIN_SKIPPED", 0)
    head = build_head(compose("minatar", {}), FEATURES, num_actions=3, nonnegative=True).double()
    initialise(head, torch.Generator().manual_seed(0))
    psi = torch.relu(example()[0].detach())
    taus = torch.rand(LEVELS, BATCH, dtype=torch.float64).t().requires_grad_()
    gradients = []
    for sparse in (False, True):
        head.sparse = sparse
        gradients.append(torch.autograd.grad(head.quantiles(psi, taus).sum(), taus)[0])
    assert_close(*gradients)


@pytest.mark.parametrize(
    "change",
    [{"merge": "residual"}, {"merge": "concatenate"}, {"embedding_activation": "sigmoid"}],
    ids=str,
)
def test_what_has_no_shared_zeros_is_not_taken_for_it(change):
    settings = compose("minatar", change)
    assert not build_head(settings, FEATURES, num_actions=3, nonnegative=True).sparse


class Tanh(Torso):
    """A torso whose features can be negative, and which does not say that they are not."""

    num_features = 128

    def __init__(self):
        super().__init__(ObservationSpec.array((4,), "float32", "vector"), NoConfig())
        self.linear = torch.nn.Linear(4, 128)

    def forward(self, x):
        return torch.tanh(self.linear(x))


def test_behind_a_torso_with_negative_features_no_zeros_are_skipped_and_gradients_are_right():
    torch.manual_seed(0)
    head = build_head(compose("small", {}), 128, num_actions=3)
    network = ReturnNetwork(Tanh(), head).double()
    x, taus, w = torch.randn(32, 4).double(), torch.rand(32, 8).double(), torch.randn(32, 8, 3).double()

    def gradient():
        network.zero_grad()
        (network(x, taus) * w).sum().backward()
        return head.phi.linear.weight.grad.clone()

    assert not head.sparse
    mine, head.sparse = gradient(), True
    assert (gradient() - mine).norm() > 0.1 * mine.norm()  # what skipping would have made of it


@pytest.mark.parametrize(("preset", "env"), [("small", (4,)), ("minatar", (10, 10, 4))])
def test_the_built_in_torsos_say_that_they_end_in_a_relu(preset, env):
    spec = ObservationSpec.array(env, "float32", "vector" if len(env) == 1 else "hwc")
    network = build_network(compose(preset, {}), spec, 3)
    assert network.torso.nonnegative
    assert network.head.sparse
    assert (network.features(torch.randn(64, *env)) >= 0).all()
