"""Targets choose and mix only among the actions that are allowed."""

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from quantail.errors import QuantailError
from quantail.networks.heads import HEADS
from quantail.risk import CVaR, DecisionContext, RiskMeasure
from tests.helpers.configs import build_network
from tests.helpers.learners import SPEC, batch, given, learner

ROWS, ACTIONS, N_TARGET, K = 40, 3, 5, 3
TINY = {"quantiles": 6, "atoms": 11, "value_min": -2, "value_max": 3, "online_samples": 4}
TINY |= {"target_samples": N_TARGET, "policy_samples": K}
TEMPERATURE, ALPHA, CLIP = 0.2, 0.9, -0.3
MUNCHAUSEN = {"target": "munchausen", "munchausen_temperature": TEMPERATURE, "munchausen_clip": CLIP}
TARGETS = {"bellman": {}, "double": {"double": True}, "munchausen": MUNCHAUSEN}


def masked_learner(head, **changes):
    """A learner with a risk measure, whose target network is another one than the online network."""
    mine = learner(CVaR(0.4), actions=ACTIONS, head=head, **TINY, **changes)
    other = build_network(mine.whole, SPEC, ACTIONS, seed=13)
    with torch.no_grad():
        for parameter in other.head.parameters():
            parameter.mul_(2)  # so that actions differ
    mine.target.load_state_dict(other.state_dict())
    return mine


def masked_batch():
    """A batch in which each action is allowed in about half of the states, and at least one is."""
    g = torch.Generator().manual_seed(3)
    masks = torch.rand(2, ROWS, ACTIONS, generator=g) < 0.4
    masks.scatter_(2, torch.randint(ACTIONS, (2, ROWS, 1), generator=g), True)
    return replace(batch(ROWS, actions=ACTIONS), masks=masks[0], next_masks=masks[1])


def draws_of(mine, *counts):
    """The τ that the learner will draw next: [ROWS, count] each."""
    draws = copy.deepcopy(mine.taus.generator)
    return [torch.from_numpy(draws.random((ROWS, count), dtype=np.float32)) for count in counts]


@torch.no_grad()
def values_of(mine, network, observations, taus):
    return network.head.value(network.features(observations), mine.risk, given(taus))


@torch.no_grad()
def distribution_of(mine, observations, taus):
    return mine.target.head.distribution(mine.target.features(observations), given(taus))


def best_of(values, mask):
    """The best action among the allowed ones, by comparing them one by one."""
    best = None
    for action, value in enumerate(values.tolist()):
        if mask[action] and (best is None or value > values[best]):
            best = action
    return best


def log_policy(values, mask):
    """log π over the allowed actions; None for a forbidden one."""
    kept = [v / TEMPERATURE for v, allowed in zip(values.tolist(), mask, strict=True) if allowed]
    total = math.log(sum(math.exp(v - max(kept)) for v in kept)) + max(kept)
    return [
        v / TEMPERATURE - total if allowed else None
        for v, allowed in zip(values.tolist(), mask, strict=True)
    ]


def test_allowed_gives_forbidden_actions_minus_infinity_and_leaves_the_others_as_they_are():
    values = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]])
    mask = torch.tensor([[True, True, False], [False, True, False]])
    kept = DecisionContext(mask).allowed(values)
    assert kept.tolist() == [[1.0, -2.0, -math.inf], [-math.inf, 5.0, -math.inf]]
    assert values.isfinite().all()
    assert DecisionContext().allowed(values) is values


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("head", HEADS)
def test_the_next_action_is_the_best_that_is_allowed_at_the_next_observation(head, double):
    mine, data = masked_learner(head, double=double), masked_batch()
    policy, levels = draws_of(mine, K, N_TARGET)
    target = mine.targets(data)
    network = mine.online if double else mine.target
    values = values_of(mine, network, data.next_observations, policy)
    distribution = distribution_of(mine, data.next_observations, levels)
    anything = torch.ones(ACTIONS) > 0
    wrong = {"without a mask": 0, "with the mask of the observation": 0}
    for row in range(ROWS):
        best = best_of(values[row], data.next_masks[row])
        expected = data.rewards[row] + data.discounts[row] * distribution.atoms[row, best]
        torch.testing.assert_close(target.atoms[row], expected, rtol=1e-4, atol=1e-5)
        if data.discounts[row] == 0:
            continue  # the atoms are the reward, whatever the action is
        wrong["without a mask"] += best != best_of(values[row], anything)
        wrong["with the mask of the observation"] += best != best_of(values[row], data.masks[row])
        torch.testing.assert_close(
            target.probabilities()[row], distribution.probabilities()[row, best], rtol=1e-4, atol=1e-5
        )
    assert min(wrong.values()) > 5, wrong  # so that each of these mistakes would show


@pytest.mark.parametrize("head", HEADS)
def test_the_munchausen_target_mixes_only_the_allowed_actions_and_its_bonus_knows_only_them(head):
    mine, data = masked_learner(head, **MUNCHAUSEN), masked_batch()
    policy, levels, policy_here = draws_of(mine, K, N_TARGET, K)
    target = mine.targets(data)
    assert target.atoms.isfinite().all()
    after = values_of(mine, mine.target, data.next_observations, policy)
    here = values_of(mine, mine.target, data.observations, policy_here)
    distribution = distribution_of(mine, data.next_observations, levels)
    forbidden = 0
    for row in range(ROWS):
        action = int(data.actions[row])
        log = log_policy(here[row], data.masks[row])[action]
        forbidden += log is None
        scaled = CLIP if log is None else max(TEMPERATURE * log, CLIP)
        reward = float(data.rewards[row]) + ALPHA * scaled
        discount = float(data.discounts[row])
        allowed = data.next_masks[row] if discount else torch.ones(ACTIONS) > 0
        logs = log_policy(after[row], allowed)
        mixed = {
            a: (math.exp(log), distribution.atoms[row, a].double() - TEMPERATURE * log)
            for a, log in enumerate(logs)
            if log is not None
        }
        if distribution.comonotone:
            soft = sum(probability * atoms for probability, atoms in mixed.values())
            expected = reward + discount * soft
            torch.testing.assert_close(target.atoms[row].double(), expected, rtol=1e-4, atol=1e-5)
            continue
        atoms = target.atoms[row].view(ACTIONS, -1).double()
        probs = target.probs[row].view(ACTIONS, -1).double()
        for a in range(ACTIONS):
            if a not in mixed:
                assert (probs[a] == 0).all()
                continue
            probability, shifted = mixed[a]
            torch.testing.assert_close(atoms[a], reward + discount * shifted, rtol=1e-4, atol=1e-5)
            of_atom = probability * distribution.probabilities()[row, a].double()
            torch.testing.assert_close(probs[a], of_atom, rtol=1e-4, atol=1e-5)
    assert forbidden  # so that the bonus of an action that the mask forbids is seen


@pytest.mark.parametrize("parts", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("head", HEADS)
def test_an_ended_episode_may_allow_no_action_and_its_target_is_the_reward(head, parts):
    mine, data = masked_learner(head, **parts), masked_batch()
    ended = data.discounts == 0
    data = replace(data, next_masks=data.next_masks & ~ended.unsqueeze(1))
    assert 3 < ended.sum() < ROWS
    _, _, policy_here = draws_of(mine, K, N_TARGET, K)
    target = copy.deepcopy(mine).targets(data)
    expected = data.rewards.double()
    if mine.config.target.name == "munchausen":
        here = values_of(mine, mine.target, data.observations, policy_here)
        for row in range(ROWS):
            log = log_policy(here[row], data.masks[row])[int(data.actions[row])]
            expected[row] += ALPHA * (CLIP if log is None else max(TEMPERATURE * log, CLIP))
    assert target.atoms.isfinite().all()
    assert target.probabilities().isfinite().all()
    # Atoms without probability, those of forbidden actions, have no meaning; here there are none.
    rows = target.atoms[ended].double()
    torch.testing.assert_close(rows, expected[ended].unsqueeze(1).expand_as(rows), rtol=1e-4, atol=1e-5)
    mine.update(data)
    assert math.isfinite(mine.report().loss)


@pytest.mark.parametrize("parts", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("head", HEADS)
def test_masks_that_allow_everything_change_no_bit(head, parts):
    data = batch(ROWS, actions=ACTIONS)
    anything = torch.ones(ROWS, ACTIONS) > 0
    free = masked_learner(head, **parts).targets(data)
    masked = masked_learner(head, **parts).targets(replace(data, masks=anything, next_masks=anything))
    assert torch.equal(free.atoms, masked.atoms)
    assert torch.equal(free.probabilities(), masked.probabilities())


@pytest.mark.parametrize("name", ["masks", "next_masks"])
def test_a_state_that_allows_no_action_is_an_error_in_one_sentence(name):
    mine, data = masked_learner("expected"), masked_batch()
    going_on = int((data.discounts > 0).nonzero()[4])
    getattr(data, name)[going_on] = False
    with pytest.raises(QuantailError, match=f"mask of state {going_on} forbids all 3 actions: it takes"):
        mine.update(data)
    assert mine.updates == 0


@dataclass(frozen=True)
class Recording(RiskMeasure):
    """The mean, which records the masks that come with the distributions."""

    seen: list
    name = "recording"
    summary = "the mean"

    def value(self, z, context=None):
        self.seen.append(context.mask)
        return z.mean()


@pytest.mark.parametrize("parts", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("head", HEADS)
def test_a_risk_measure_is_given_the_mask_of_the_states_that_it_values(head, parts):
    mine, data = masked_learner(head, **parts), masked_batch()
    data = replace(data, discounts=torch.full((ROWS,), 0.9))
    mine.risk = Recording([])
    mine.targets(data)
    expected = (
        [data.next_masks, data.masks] if mine.config.target.name == "munchausen" else [data.next_masks]
    )
    assert len(mine.risk.seen) == len(expected)
    for seen, mask in zip(mine.risk.seen, expected, strict=True):
        assert torch.equal(seen, mask)
