import copy

import numpy as np
import pytest
import torch

from quantail.batch import Batch
from quantail.errors import QuantailError
from quantail.risk import CVaR, Neutral, Wang, parse_risk
from quantail.taus import midpoints
from tests.helpers.configs import build_network
from tests.helpers.learners import SPEC, batch, given, learner
from tests.helpers.loops import triple_loop


def test_targets_match_algorithm_one_written_out():
    mine = learner(CVaR(0.4), online_samples=3, target_samples=5, policy_samples=4)
    # The target network is another one than the online network, and one in which levels matter.
    mine.target.load_state_dict(build_network(mine.whole, SPEC, 2, seed=9).state_dict())
    with torch.no_grad():
        mine.target.head.phi[1].weight.mul_(8)
        mine.target.head.f[2].bias.zero_()
    data = batch(40)
    draws = np.random.default_rng(0)
    policy = torch.from_numpy(draws.random((40, 4), dtype=np.float32))
    levels = torch.from_numpy(draws.random((40, 5), dtype=np.float32))
    targets = mine.targets(data).atoms
    differ = {"undistorted": 0, "by the target's own levels": 0, "by the online network": 0}
    for row in range(40):
        state = data.next_observations[row : row + 1]

        def choice(network, taus, state=state):
            return int((sum(network(state, tau.view(1, 1))[0, 0] for tau in taus) / len(taus)).argmax())

        best = choice(mine.target, 0.4 * policy[row])
        differ["undistorted"] += best != choice(mine.target, policy[row])
        differ["by the target's own levels"] += best != choice(mine.target, levels[row])
        differ["by the online network"] += best != choice(mine.online, 0.4 * policy[row])
        for j in range(5):
            z = mine.target(state, levels[row : row + 1, j : j + 1])[0, 0, best]
            expected = data.rewards[row] + data.discounts[row] * z
            torch.testing.assert_close(targets[row, j], expected, rtol=1e-4, atol=1e-5)
    assert all(differ.values()), differ  # so that each of these mistakes would show


def test_an_update_is_one_step_of_adam_on_the_mean_loss():
    mine = learner(online_samples=3, target_samples=5, policy_samples=4)
    other = copy.deepcopy(mine)
    data = batch()
    targets = other.targets(data).atoms
    taus = torch.from_numpy(other.taus.generator.random((4, 3), dtype=np.float32))
    before = {name: p.detach().clone() for name, p in other.online.named_parameters()}

    def mean_loss():
        returns = other.online(data.observations, taus)
        picked = torch.stack([returns[row, :, a] for row, a in enumerate(data.actions)])
        delta = targets[:, None, :] - picked[:, :, None]
        size = delta.abs()
        huber = torch.where(size <= 1, 0.5 * size**2, size - 0.5)
        return ((taus[:, :, None] - (delta < 0).float()).abs() * huber).mean(2).sum(1).mean(), picked

    loss, picked = mean_loss()
    torch.testing.assert_close(
        loss.double(), triple_loop(picked, taus, targets, 1.0).mean(), rtol=1e-5, atol=1e-6
    )
    gradients = torch.autograd.grad(loss, list(other.online.parameters()))
    mine.update(data)
    report = mine.report()
    assert report.loss == pytest.approx(loss.item(), rel=1e-5)
    for (name, parameter), gradient in zip(mine.online.named_parameters(), gradients, strict=True):
        # Adam's first step: the corrected moments are the gradient and its square.
        step = 1e-3 * gradient / (gradient.abs() + mine.config.optimizer.config.adam_epsilon)
        torch.testing.assert_close(parameter.detach(), before[name] - step, rtol=1e-4, atol=1e-6)


def test_the_distortion_touches_the_policys_levels_and_never_the_losses_own():
    seen = []

    def record(tau):
        seen.append(tuple(tau.shape))
        return 0.1 * tau

    risk = parse_risk(record)
    seen.clear()  # of the check that it is a distortion
    mine = learner(risk, online_samples=3, target_samples=5, policy_samples=7)
    mine.update(batch())
    assert seen == [(4, 7)]


def test_the_target_network_moves_only_when_it_is_synced():
    mine = learner()
    start = copy.deepcopy(mine.target.state_dict())
    mine.update(batch())
    assert all(torch.equal(start[k], v) for k, v in mine.target.state_dict().items())
    mine.sync_target()
    online = mine.online.state_dict()
    assert all(torch.equal(online[k], v) for k, v in mine.target.state_dict().items())
    assert any(not torch.equal(start[k], online[k]) for k in start)


def test_gradient_clip_bounds_the_step_of_the_gradient():
    mine = learner(gradient_clip=1e-6)
    mine.update(batch())
    moved = mine.main.optimizer.param_groups[0]["params"]
    assert torch.cat([p.grad.flatten() for p in moved]).norm() == pytest.approx(1e-6, rel=0.01)


def test_a_learner_restored_from_its_tensors_goes_on_bit_for_bit():
    a = learner()
    for seed in range(3):
        a.update(batch(seed=seed))
    b = learner(seed=5)
    b.online.load_state_dict(a.online.state_dict())
    b.load_state_dict({k: v.copy() for k, v in a.state_dict().items()})
    b.taus.generator.bit_generator.state = a.taus.generator.bit_generator.state
    for seed in range(3, 6):
        a.update(batch(seed=seed))
        b.update(batch(seed=seed))
    for key, value in a.state_dict().items():
        assert np.array_equal(value, b.state_dict()[key]), key
    assert a.report() == b.report()


def test_a_loss_that_is_not_finite_stops_with_a_sentence():
    mine = learner()
    data = batch()
    data.rewards[0] = float("inf")
    mine.update(data)
    with pytest.raises(QuantailError, match="loss was not finite"):
        mine.check_finite()


@pytest.fixture(scope="module")
def bandit():
    """One state, two arms: 0 pays N(1, 2), 1 pays 0.6 for sure. Learned from a few thousand pulls."""
    mine = learner(
        online_samples=16, target_samples=1, policy_samples=8, batch_size=128, learning_rate=3e-3
    )
    rng = np.random.default_rng(0)
    state = torch.ones(128, 3)
    for _ in range(1500):
        arms = rng.integers(2, size=128)
        pay = np.where(arms == 0, rng.normal(1.0, 2.0, 128), 0.6).astype(np.float32)
        pulled = torch.from_numpy(arms), torch.from_numpy(pay), torch.zeros(128)
        mine.update(Batch(state, *pulled, state, torch.ones(128), torch.arange(128)))
    return mine.online


def test_the_learned_quantiles_are_those_of_the_reward_and_rise_with_tau(bandit):
    taus = torch.tensor([[0.1, 0.25, 0.5, 0.75, 0.9]])
    with torch.no_grad():
        learned = bandit(torch.ones(1, 3), taus)[0]
    exact = 1.0 + 2.0 * torch.special.ndtri(taus[0])
    # κ = 1 shrinks the tails a little towards the middle.
    assert (learned[:, 0] - exact).abs().max() < 0.6
    assert (learned[:, 0].diff() > 0.5).all()
    assert (learned[:, 1] - 0.6).abs().max() < 0.25


def test_the_mean_prefers_the_risky_arm_and_cvar_the_sure_one(bandit):
    """An inverted indicator would learn the mirror image and turn the second choice round."""

    def choice(risk):
        with torch.no_grad():
            features = bandit.features(torch.ones(1, 3))
            return int(bandit.head.value(features, risk, given(midpoints(32)[None])).argmax())

    assert choice(Neutral()) == 0
    assert choice(CVaR(0.25)) == 1
    assert choice(Wang(-0.75)) == 1
    assert choice(Wang(0.75)) == 0


@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
@pytest.mark.parametrize(
    ("name", "put", "says"),
    [
        (
            "optimizer.torso.layers.1.weight.MOMENT",
            torch.zeros(()),
            "shape \\(\\), and it takes float32",
        ),
        ("optimizer.torso.layers.1.weight.MOMENT", torch.zeros(0), "of shape \\(0,\\)"),
        (
            "optimizer.torso.layers.1.weight.MOMENT",
            torch.zeros(3, 16),
            "it takes float32 of shape \\(16, 3\\)",
        ),
        (
            "optimizer.torso.layers.1.weight.MOMENT",
            torch.zeros(16, 3, dtype=torch.float64),
            "is float64",
        ),
        ("optimizer.torso.layers.1.weight.MOMENT", None, "lacks optimizer.torso.layers.1.weight"),
        (
            "optimizer.torso.layers.1.weight.more",
            torch.zeros(()),
            "unknown tensor optimizer.torso",
        ),
        ("optimizer.nothing.MOMENT", torch.zeros(()), "unknown tensor optimizer.nothing"),
        (
            "target.torso.layers.1.weight",
            torch.zeros(1),
            "target.torso.layers.1.weight is float32 of shape \\(1,\\)",
        ),
        ("target.torso.layers.1.weight", None, "lacks target.torso.layers.1.weight"),
        ("sums", torch.zeros(3, dtype=torch.float64), "sums is float64 of shape \\(3,\\)"),
        ("sums", None, "lacks sums"),
        ("counts", torch.ones(2), "counts is float32"),
        ("counts", torch.zeros(1, dtype=torch.int64), "unknown tensor optimizer"),
        ("counts", None, "lacks counts"),
    ],
)
def test_tensors_of_another_shape_dtype_or_name_are_refused_and_change_nothing(
    optimizer, name, put, says
):
    a, b = learner(optimizer=optimizer), learner(optimizer=optimizer)
    a.update(batch())
    tensors = {k: v.copy() for k, v in a.state_dict().items()}
    name = name.replace("MOMENT", "exp_avg" if optimizer == "adam" else "mean")
    tensors.pop(name, None)
    if put is not None:
        tensors[name] = put.numpy()
    before = {k: v.copy() for k, v in b.state_dict().items()}
    with pytest.raises(QuantailError, match=says):
        b.load_state_dict(tensors)
    assert before.keys() == b.state_dict().keys()
    assert all(np.array_equal(value, b.state_dict()[key]) for key, value in before.items())


@pytest.mark.parametrize("put", [torch.zeros(3), torch.zeros((), dtype=torch.float64)])
def test_the_step_of_adam_must_be_one_float(put):
    a, b = learner(), learner()
    a.update(batch())
    tensors = a.state_dict() | {"optimizer.torso.layers.1.weight.step": put.numpy()}
    with pytest.raises(QuantailError, match=r"weight.step is .*takes float32 of shape"):
        b.load_state_dict(tensors)


def test_a_learner_that_has_not_learned_yet_is_restored_without_moments():
    a, b = learner(), learner(seed=1)
    b.load_state_dict(a.state_dict())
    assert b.updates == 0
    with pytest.raises(QuantailError, match="unknown tensor optimizer"):
        b.load_state_dict(
            a.state_dict() | {"optimizer.torso.layers.1.weight.exp_avg": np.zeros((16, 3), np.float32)}
        )
