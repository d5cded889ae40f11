"""Updates with compiled kernels beside those with torch alone."""

import numpy as np
import pytest
import torch

from quantail.batch import Batch
from quantail.learning.learner import Learner
from quantail.networks import build_network
from quantail.recipes import compose
from quantail.risk import parse_risk
from quantail.spaces import ObservationSpec

VECTOR = ObservationSpec.array((6,), "float32", "vector")
IMAGE = ObservationSpec.array((10, 10, 4), "bool", "hwc", 1)
FAMILIES = {
    "iqn": {},
    "iqn cvar": {"risk": "cvar:0.25"},
    "iqn entropic": {"risk": "entropic:1"},
    "iqn double": {"double": True},
    "m-iqn": {"agent": "m-iqn"},
    "fqf": {"agent": "fqf"},
    "rainbow-iqn": {"agent": "rainbow-iqn"},  # noisy and dueling: no kernel for the head
    "qr-dqn": {"agent": "qr-dqn"},
    "dqn": {"agent": "dqn"},
    "rainbow": {"agent": "rainbow"},
}


def learner(kernels, image=False, risk="neutral", **changes):
    spec, preset = (IMAGE, "minatar") if image else (VECTOR, "small")
    config = compose(preset, {"batch_size": 16, "kernels": kernels, **changes})
    network = build_network(config.network, config.head, spec, 3, seed=1)
    draws = (np.random.default_rng(seed) for seed in (1, 2))
    return Learner(network, config.learner, parse_risk(risk), *draws, torch.device("cpu"))


def batch(number, image=False):
    generator = torch.Generator().manual_seed(number)
    shape = (16, 1, *(IMAGE if image else VECTOR).tree.shape)
    seen = [torch.randn(shape, generator=generator) for _ in range(2)]
    seen = [one > 1.3 for one in seen] if image else seen
    draws = torch.rand(3, 16, generator=generator)
    return Batch(
        observations=seen[0],
        actions=(3 * draws[0]).long(),
        rewards=draws[1],
        discounts=0.9 * (draws[2] > 0.1).float(),
        next_observations=seen[1],
        weights=0.5 + draws[0],
        indices=torch.arange(16),
    )


@pytest.mark.parametrize("image", [False, True], ids=["vectors", "images"])
@pytest.mark.parametrize("family", FAMILIES)
def test_one_update_agrees_with_torch_to_rounding(family, image):
    compiled, plain = (learner(kernels, image, **FAMILIES[family]) for kernels in ("auto", "torch"))
    expected = "torch" if family in ("dqn", "rainbow") and not image else "numba"
    assert (compiled.online.kernels, plain.online.kernels) == (expected, "torch")
    data = batch(0, image)
    priorities = [one.update(data) for one in (compiled, plain)]
    torch.testing.assert_close(*priorities, rtol=1e-4, atol=1e-5)
    for mine, one in zip(compiled.online.parameters(), plain.online.parameters(), strict=True):
        assert mine.grad is None or torch.equal(mine, one) or mine.grad.abs().sum() > 0
        # torch rounds π i τ to float32 before the cosine, the kernel does not.
        scale = float(one.grad.abs().max().clamp(min=1e-6))
        assert float((mine.grad - one.grad).abs().max()) <= 1e-3 * scale


@pytest.mark.parametrize("image", [False, True], ids=["vectors", "images"])
def test_400_updates_side_by_side_stay_together(image):
    compiled, plain = (learner(kernels, image, learning_rate=1e-4) for kernels in ("auto", "torch"))
    for number in range(400):
        data = batch(number % 50, image)
        for one in (compiled, plain):
            one.update(data)
            if number % 100 == 99:
                one.sync_target()
    losses = [one.report().loss for one in (compiled, plain)]
    assert losses[0] == pytest.approx(losses[1], rel=0.01)
    start = learner("torch", image, learning_rate=1e-4)
    first = torch.cat([p.detach().flatten() for p in start.online.parameters()])
    ends = [
        torch.cat([p.detach().flatten() for p in one.online.parameters()]) for one in (compiled, plain)
    ]
    assert float((ends[0] - ends[1]).norm()) < 0.05 * float((ends[1] - first).norm())


def test_the_same_seed_gives_the_same_bytes_with_kernels():
    weights = []
    for _ in range(2):
        mine = learner("auto", image=True)
        for number in range(20):
            mine.update(batch(number, image=True))
        weights.append([p.detach().clone() for p in mine.online.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*weights, strict=True))


def test_a_restored_learner_goes_on_with_the_same_bytes():
    saved, fresh = learner("auto"), learner("auto")
    for number in range(5):
        saved.update(batch(number))
    state = {name: array.copy() for name, array in saved.state_dict().items()}
    weights = {name: value.clone() for name, value in saved.online.state_dict().items()}
    taus = saved.taus.generator.bit_generator.state
    fresh.online.load_state_dict(weights)
    fresh.load_state_dict(state)
    fresh.taus.generator.bit_generator.state = taus
    for number in range(5, 10):
        saved.update(batch(number))
        fresh.update(batch(number))
    for name, value in saved.online.state_dict().items():
        assert torch.equal(value, fresh.online.state_dict()[name]), name
