"""Other arithmetic for the same update: bfloat16 products, and torch.compile."""

import pytest
import torch

from quantail.networks.heads import HEADS
from tests.helpers.learners import batch, learner


@pytest.mark.parametrize("head", HEADS)
def test_with_bfloat16_products_targets_losses_and_weights_stay_float32_and_close(head):
    found = {}
    for precision in ("float32", "bfloat16"):
        mine = learner(head=head, precision=precision, quantiles=8, online_samples=8)
        data = batch(64)
        target = mine.targets(data)
        assert target.atoms.dtype == torch.float32
        assert mine.update(data).dtype == torch.float32
        assert all(p.dtype == p.grad.dtype == torch.float32 for p in mine.main.parameters)
        gradient = torch.cat([p.grad.flatten() for p in mine.main.parameters])
        found[precision] = target.atoms, gradient
    atoms, gradients = zip(*found.values(), strict=True)
    near = torch.isclose(*atoms, rtol=0.02, atol=0.02).all(dim=1)
    assert near.float().mean() > 0.95  # a near tie may choose another next action
    assert torch.cosine_similarity(*gradients, dim=0) > 0.99
    if head != "categorical":  # whose atoms are fixed
        assert not torch.equal(*atoms)


@pytest.mark.slow
def test_compiled_updates_are_the_same_within_rounding():
    parts = {"double": True, "dueling": True, "noisy": True, "online_samples": 8}
    plain, compiled = learner(**parts), learner(**parts, compile=True)
    for seed in range(3):
        priorities = [mine.update(batch(16, seed)) for mine in (plain, compiled)]
        torch.testing.assert_close(*priorities, rtol=1e-4, atol=1e-6)
    for one, other in zip(plain.main.parameters, compiled.main.parameters, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def test_without_a_compiler_a_compiled_learner_learns_all_the_same(monkeypatch):
    torch.compiler.reset()
    monkeypatch.setenv("CXX", "/nowhere/c++")
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", ("/nowhere/c++",))
    monkeypatch.setenv("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
    plain, compiled = learner(online_samples=7), learner(online_samples=7, compile=True)
    priorities = [mine.update(batch(12)) for mine in (plain, compiled)]
    torch.testing.assert_close(*priorities, rtol=1e-4, atol=1e-6)
    assert not torch._dynamo.config.suppress_errors, "the flag of the whole process has changed"
    torch.compiler.reset()
