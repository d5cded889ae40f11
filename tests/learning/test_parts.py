"""What each part changes in an update: double, n-step, noise, weights, Munchausen, fractions."""

import copy
import itertools

import numpy as np
import pytest
import torch

from quantail.errors import QuantailError
from quantail.networks.heads import HEADS
from quantail.recipes import AGENTS, compose
from quantail.risk import CVaR, Neutral
from quantail.taus import midpoint_taus
from tests.helpers.configs import build_network
from tests.helpers.learners import SPEC, batch, given, learner
from tests.helpers.loops import double_loop

TINY = {"quantiles": 6, "atoms": 11, "online_samples": 4, "target_samples": 5, "policy_samples": 3}


def other_target(mine, seed=9):
    """A target network that is not the online one."""
    mine.target.load_state_dict(build_network(mine.whole, SPEC, 2, seed).state_dict())
    return mine


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("double", [False, True])
def test_the_next_action_is_the_online_networks_where_double_and_else_the_targets(head, double):
    mine = other_target(learner(head=head, double=double, **TINY), seed=13)
    data = batch(60)
    draws = copy.deepcopy(mine.taus.generator)
    policy = torch.from_numpy(draws.random((60, 3), dtype=np.float32))
    levels = torch.from_numpy(draws.random((60, 5), dtype=np.float32))
    target = mine.targets(data)
    following = data.next_observations

    def choice(network):
        with torch.no_grad():
            return network.head.value(network.features(following), mine.risk, given(policy)).argmax(
                dim=1
            )

    best, wrong = choice(mine.online), choice(mine.target)
    if not double:
        best, wrong = wrong, best
    assert (best != wrong).any()  # so that the wrong network would show
    with torch.no_grad():
        distribution = mine.target.head.distribution(mine.target.features(following), given(levels))
    for row in range(60):
        expected = data.rewards[row] + data.discounts[row] * distribution.atoms[row, best[row]]
        torch.testing.assert_close(target.atoms[row], expected, rtol=1e-4, atol=1e-5)
        if head == "categorical":
            probabilities = distribution.probs[row, best[row]]
            torch.testing.assert_close(target.probs[row], probabilities, rtol=1e-4, atol=1e-5)


def test_rainbows_target_is_the_projected_n_step_law_of_the_online_networks_action():
    """r₀ + γr₁ + γ²r₂ + γ³Z(x₃, a*), shared out atom by atom in float64, and its divergence."""
    mine = other_target(learner(head="categorical", double=True, atoms=11, value_min=-2, value_max=3))
    data = batch(20, done=0.3)
    with torch.no_grad():
        online = mine.online.head.distribution(
            mine.online.features(data.next_observations), midpoint_taus
        )
        frozen = mine.target.head.distribution(
            mine.target.features(data.next_observations), midpoint_taus
        )
        now = mine.online.head.distribution(mine.online.features(data.observations), midpoint_taus)
    best = online.mean().argmax(dim=1)
    support = torch.linspace(-2, 3, 11, dtype=torch.float64)
    priorities = mine.update(data)
    for row in range(20):
        atoms = data.rewards[row].double() + data.discounts[row].double() * support
        probabilities = frozen.probs[row, best[row]].double()
        projected = double_loop(atoms[None], probabilities[None], support)[0]
        predicted = now.probs[row, data.actions[row]].double()
        divergence = (torch.xlogy(projected, projected) - projected * predicted.log()).sum()
        assert float(priorities[row]) == pytest.approx(float(divergence), rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("head", HEADS)
def test_importance_weights_scale_the_loss_and_never_the_priorities(head):
    plain, weighted = (learner(head=head, **TINY) for _ in range(2))
    data = batch(6)
    weights = torch.tensor([1.0, 0.5, 0.1, 0.0, 1.0, 0.2])
    priorities = plain.update(data)
    again = weighted.update(type(data)(**{**vars(data), "weights": weights}))
    assert torch.equal(priorities, again)
    if head not in ("expected", "hl-gauss"):  # whose priority is |δ| and not the loss
        assert plain.report().loss == pytest.approx(float(priorities.mean()), rel=1e-5)
        assert weighted.report().loss == pytest.approx(float((weights * priorities).mean()), rel=1e-5)


def test_a_transition_of_weight_zero_teaches_nothing():
    mine = learner(head="quantiles", optimizer="rmsprop", **TINY)
    before = copy.deepcopy(mine.online.state_dict())
    data = batch(4)
    mine.update(type(data)(**{**vars(data), "weights": torch.zeros(4)}))
    assert all(torch.equal(before[k], v) for k, v in mine.online.state_dict().items())


def test_dqns_priority_is_the_size_of_its_error():
    mine = other_target(learner(head="expected"))
    data = batch(8)
    with torch.no_grad():
        q = mine.online.head.expected(mine.online.features(data.observations))
        following = mine.target.head.expected(mine.target.features(data.next_observations))
    delta = data.rewards + data.discounts * following.max(dim=1).values
    delta -= q.gather(1, data.actions[:, None])[:, 0]
    torch.testing.assert_close(mine.update(data), delta.abs())


@pytest.mark.parametrize(("double", "draws"), [(False, 2), (True, 3)])
def test_noise_is_drawn_afresh_for_the_prediction_the_target_and_the_choice(double, draws):
    mine = learner(head="implicit", noisy=True, double=double, **TINY)
    seen = []
    for name, network in (("online", mine.online), ("target", mine.target)):
        layer = network.head.f[0]
        layer.register_forward_hook(
            lambda layer, inputs, output, name=name: seen.append((name, layer.noise[0].clone()))
        )
    mine.update(batch())
    expected = ["online", "target", "online"] if double else ["target", "online"]
    assert [name for name, _ in seen] == expected
    assert all(not torch.equal(a, b) for (_, a), (_, b) in itertools.combinations(seen, 2))
    assert len(seen) == draws
    mine.update(batch())
    assert all(not torch.equal(a, b) for (_, a), (_, b) in itertools.combinations(seen, 2))


@pytest.mark.parametrize("head", HEADS)
def test_noise_levels_are_learned_with_every_head(head):
    mine = learner(head=head, noisy=True, **TINY)
    before = {k: v.clone() for k, v in mine.online.state_dict().items() if "sigma" in k}
    for seed in range(3):
        mine.update(batch(seed=seed))
    assert before
    assert all(not torch.equal(v, mine.online.state_dict()[k]) for k, v in before.items())


@pytest.mark.parametrize("head", HEADS)
def test_the_munchausen_target_takes_both_policies_from_the_target_network(head):
    mine = other_target(learner(head=head, target="munchausen", munchausen_temperature=0.1, **TINY))
    if head == "fractions":
        mine = uneven(mine)
    data = batch(30)
    draws = copy.deepcopy(mine.taus.generator)
    policy, levels, here = (
        torch.from_numpy(draws.random((30, count), dtype=np.float32)) for count in (3, 5, 3)
    )
    target = mine.targets(data)
    net = mine.target
    with torch.no_grad():
        now = net.head.value(net.features(data.observations), Neutral(), given(here)).double()
        then = net.head.value(net.features(data.next_observations), Neutral(), given(policy)).double()
        mean = net.head.distribution(net.features(data.next_observations), given(levels)).mean()
    for row in range(30):
        logs = torch.log_softmax(now[row] / 0.1, dim=0)
        bonus = 0.9 * max(-1.0, 0.1 * float(logs[data.actions[row]]))
        after = torch.log_softmax(then[row] / 0.1, dim=0)
        soft = float((after.exp() * (mean[row].double() - 0.1 * after)).sum())
        expected = float(data.rewards[row]) + bonus + float(data.discounts[row]) * soft
        assert float(target.mean()[row]) == pytest.approx(expected, abs=1e-4)


def test_fractions_have_an_optimizer_of_their_own_and_each_moves_only_what_is_its():
    mine = learner(head="fractions", fraction_rate=1e-3, **TINY)
    still = learner(head="fractions", fraction_rate=0.0, **TINY)
    before = copy.deepcopy(mine.online.state_dict())
    data = batch(8)
    mine.update(data)
    still.update(data)
    for key, value in mine.online.state_dict().items():
        moved, without = not torch.equal(before[key], value), still.online.state_dict()[key]
        assert moved, key
        assert torch.equal(without, value) == ("proposal" not in key), key
    assert torch.equal(still.online.head.proposal.weight, before["head.proposal.weight"])
    own = mine.auxiliary["fractions"]
    group = own.optimizer.param_groups[0]
    assert (group["lr"], group["decay"], group["eps"]) == (1e-3, 0.95, 1e-5 / 32**2)
    proposing = {id(p) for p in mine.online.head.proposal.parameters()}
    assert {id(p) for p in own.parameters} == proposing
    assert not proposing & {id(p) for p in mine.main.parameters}


def test_the_fractions_own_loss_is_weighted_and_its_gradient_is_not_clipped():
    plain, half, clipped = (
        learner(head="fractions", **TINY, gradient_clip=clip) for clip in (0.0, 0.0, 1e-6)
    )
    data = batch(8)
    for mine in (plain, clipped):
        mine.update(data)
    half.update(type(data)(**{**vars(data), "weights": torch.full((8,), 0.5)}))
    gradients = [mine.online.head.proposal.weight.grad for mine in (plain, half, clipped)]
    assert gradients[0].abs().sum() > 0
    torch.testing.assert_close(gradients[1], gradients[0] / 2)
    torch.testing.assert_close(gradients[2], gradients[0])


def test_the_fractions_loss_sends_nothing_into_torso_or_quantiles():
    mine = learner(head="fractions", learning_rate=0.0, fraction_rate=0.5, **TINY)
    before = copy.deepcopy(mine.online.state_dict())
    mine.update(batch(8))
    moved = {k for k, v in mine.online.state_dict().items() if not torch.equal(v, before[k])}
    assert moved == {"head.proposal.weight", "head.proposal.bias"}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_learner_of_every_agent_restored_from_its_tensors_goes_on_bit_for_bit(agent):
    parts = {**AGENTS[agent].parts, "fraction_rate": 1e-3}
    for optimizer in ("adam", "rmsprop"):
        a = learner(**parts, optimizer=optimizer, target_samples=5, policy_samples=3)
        for seed in range(3):
            a.update(batch(seed=seed))
        b = learner(**parts, optimizer=optimizer, target_samples=5, policy_samples=3, seed=5)
        b.online.load_state_dict(a.online.state_dict())
        b.load_state_dict({k: v.copy() for k, v in a.state_dict().items()})
        b.taus.generator.bit_generator.state = a.taus.generator.bit_generator.state
        b.noise.bit_generator.state = a.noise.bit_generator.state
        for seed in range(3, 6):
            assert torch.equal(a.update(batch(seed=seed)), b.update(batch(seed=seed)))
        assert a.state_dict().keys() == b.state_dict().keys()
        for key, value in a.state_dict().items():
            assert np.array_equal(value, b.state_dict()[key]), key


COMBINATIONS = list(itertools.product(HEADS, *[(False, True)] * 4, (1, 3), ("neutral", "cvar:0.3")))


def test_every_valid_combination_of_parts_updates_and_every_other_is_refused_with_the_reason():
    data, refused = batch(4), 0
    for head, dueling, noisy, double, munchausen, n_step, risk in COMBINATIONS:
        parts = {
            "head": head,
            "dueling": dueling,
            "noisy": noisy,
            "double": double,
            "target": "munchausen" if munchausen else "bellman",
            "n_step": n_step,
        }
        if munchausen and (double or n_step > 1):
            refused += 1
            with pytest.raises(QuantailError, match="munchausen"):
                compose("small", parts)
            continue
        mine = learner(CVaR(0.3) if risk != "neutral" else None, **parts, **TINY)
        before = copy.deepcopy(mine.online.state_dict())
        priorities = mine.update(data)
        assert priorities.shape == (4,)
        assert (priorities >= 0).all()
        mine.check_finite()
        assert any(not torch.equal(before[k], v) for k, v in mine.online.state_dict().items()), parts
    assert refused == len(HEADS) * 4 * 3 * 2


def uneven(mine):
    """Fractions that are far from evenly spaced."""
    for network in (mine.online, mine.target):
        with torch.no_grad():
            network.head.proposal.bias.copy_(torch.linspace(-2, 2, 6))
    return mine


def test_fqfs_loss_is_the_triple_loop_at_its_own_levels_with_targets_counted_by_their_chance():
    mine = uneven(other_target(learner(head="fractions", **TINY)))
    data = batch(5)
    with torch.no_grad():
        levels = mine.online.head.fractions(mine.online.features(data.observations))
        taus = (levels[:, 1:] + levels[:, :-1]) / 2
        predictions = mine.online.head.implicit.quantiles(mine.online.features(data.observations), taus)
        distribution = mine.target.head.distribution(
            mine.target.features(data.next_observations), midpoint_taus
        )
        best = distribution.mean().argmax(dim=1)
    priorities = mine.update(data)
    for row in range(5):
        total = 0.0
        for i, j in itertools.product(range(6), range(6)):
            target = data.rewards[row] + data.discounts[row] * distribution.atoms[row, best[row], j]
            delta = float(target - predictions[row, i, data.actions[row]])
            size = 0.5 * delta**2 if abs(delta) <= 1 else abs(delta) - 0.5
            total += float(distribution.probs[row, 0, j]) * abs(float(taus[row, i]) - (delta < 0)) * size
        assert float(priorities[row]) == pytest.approx(total, rel=1e-4)
    assert (
        distribution.probs.max() > 3 * distribution.probs.min()
    )  # so that counting them equally would show


def test_the_torsos_gradient_is_that_of_the_quantile_loss_alone():
    mine = uneven(learner(head="fractions", **TINY))
    other, data = copy.deepcopy(mine), batch(8)
    head, features = other.online.head, other.online.features(data.observations)
    outcome = head.loss(features, data.actions, other.targets(data), midpoint_taus)
    outcome.losses.mean().backward()
    mine.update(data)
    torch.testing.assert_close(
        mine.online.torso.layers[1].weight.grad, other.online.torso.layers[1].weight.grad
    )
