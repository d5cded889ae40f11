"""Each fault that a target may have gets its own sentence from `check_target`."""

from dataclasses import replace

import pytest
import torch

from quantail.distributions import ReturnDistribution
from quantail.learning.targets import BellmanConfig, BellmanTarget, MunchausenTarget
from quantail.risk import DecisionContext
from quantail.testing import PartError, check_target
from tests.testing.wrong import collector

wrong, WRONG = collector()


class GoodTarget:
    """The mean over all allowed actions of their returns: a target for a policy that plays at random."""

    uses_online = False

    def __call__(self, batch, online, target, risk, taus):
        returns = target.head.distribution(target.features(batch.next_observations), taus)
        policy = torch.ones(returns.shape)
        if batch.next_masks is not None:
            policy = (batch.next_masks | (batch.discounts == 0).unsqueeze(1)).float()
        policy = policy / policy.sum(dim=1, keepdim=True)
        return returns.mixture(policy).affine(batch.rewards, batch.discounts)


class AsksForBothAtOnce(GoodTarget):
    """It asks about observations and next observations in one pass, and adds a bonus."""

    def __call__(self, batch, online, target, risk, taus):
        both = torch.cat([batch.observations, batch.next_observations])
        values, returns = target.head.value_and_distribution(target.features(both), risk, taus)
        size = len(batch.actions)
        bonus = 0.1 * values[:size].gather(1, batch.actions.unsqueeze(1)).squeeze(1).sigmoid()
        after = DecisionContext(batch.next_masks).allowed(values[size:])
        probs = None if returns.probs is None else returns.probs[size:]
        following = ReturnDistribution(returns.atoms[size:], probs)
        return following.select(after.argmax(dim=1)).affine(batch.rewards + bonus, batch.discounts)


@pytest.mark.parametrize("target", [GoodTarget(), AsksForBothAtOnce()])
def test_a_target_from_outside_that_keeps_the_contract_passes(target):
    check_target(target)


def test_a_class_instead_of_a_target_is_refused():
    with pytest.raises(PartError, match="target GoodTarget is a class"):
        check_target(GoodTarget)


def test_a_function_that_does_not_say_whether_it_uses_the_online_network_is_refused():
    def target(batch, online, target, risk, taus):
        return BellmanTarget()(batch, online, target, risk, taus)

    with pytest.raises(PartError, match="target target has None as uses_online"):
        check_target(target)
    target.uses_online = False
    check_target(target)


class Changed(BellmanTarget):
    """A Bellman target that is changed before or afterwards."""

    def before(self, batch):
        return batch

    def after(self, z, batch):
        return z

    def __call__(self, batch, online, target, risk, taus):
        return self.after(super().__call__(self.before(batch), online, target, risk, taus), batch)


@wrong("gave a Tensor when asked for the target .* must give a ReturnDistribution")
class BareAtoms(Changed):
    def after(self, z, batch):
        return z.atoms


@wrong(r"gave atoms of shape \(24, 3, 5\) .* must have the shape \(24, atoms\)")
class AllActions(GoodTarget):
    def __call__(self, batch, online, target, risk, taus):
        return target.head.distribution(target.features(batch.next_observations), taus)


@wrong("that are not finite")
class Overflows(Changed):
    def after(self, z, batch):
        return replace(z, atoms=z.atoms / 0)


@wrong("gave atoms of torch.float64")
class Doubled(Changed):
    def after(self, z, batch):
        return replace(z, atoms=z.atoms.double())


@wrong("raised RuntimeError .*there is no mask.* when asked for the target")
class NeedsAMask(Changed):
    def before(self, batch):
        if batch.next_masks is None:
            raise RuntimeError("there is no mask")
        return batch


@wrong("gives a target with a gradient")
class WithGradient(GoodTarget):
    uses_online = True

    def __call__(self, batch, online, target, risk, taus):
        with torch.enable_grad():
            return super().__call__(batch, target, online, risk, taus)


@wrong("draws its own random numbers .* the sampler `taus` must be its only source")
class BreaksTiesAtRandom(Changed):
    def after(self, z, batch):
        return replace(z, atoms=z.atoms + 1e-6 * torch.rand(len(z.atoms), 1))


@wrong(r"called taus\(24, 5.0\)")
class HalfAFraction(GoodTarget):
    def __call__(self, batch, online, target, risk, taus):
        return super().__call__(batch, online, target, risk, lambda b, count: taus(b, float(count)))


@wrong("changed in place what it was given")
class AddsInPlace(Changed):
    def before(self, batch):
        batch.rewards.add_(1)
        return batch


@wrong("changes a network that it is given")
class MovesTheTargetNetwork(GoodTarget):
    """A slow average of the online network belongs to the learner."""

    uses_online = True

    def __call__(self, batch, online, target, risk, taus):
        z = super().__call__(batch, online, target, risk, taus)
        for mine, theirs in zip(target.parameters(), online.parameters(), strict=True):
            mine.copy_(theirs)
        return z


@wrong("changes a network that it is given")
class SwitchesTheMode(GoodTarget):
    def __call__(self, batch, online, target, risk, taus):
        target.eval()
        return super().__call__(batch, online, target, risk, taus)


@wrong("has uses_online False and asks the online network,")
class SecretlyDouble(BellmanTarget):
    def __init__(self):
        super().__init__(BellmanConfig(double=True))

    uses_online = False


@wrong("has uses_online True and asks the online network nothing,")
class PretendsToBeDouble(BellmanTarget):
    uses_online = True


@wrong("does not shift by 1.5 when all rewards are 1.5 higher")
class ClipsRewards(Changed):
    def before(self, batch):
        return replace(batch, rewards=batch.rewards.clamp(-1, 1))


@wrong("depends on the next observation or its mask where the discount is 0")
class IgnoresTheEnd(Changed):
    def before(self, batch):
        return replace(batch, discounts=torch.full_like(batch.discounts, 0.9))


@wrong("depends on the next observation or its mask where the discount is 0")
class NoActionLeft(MunchausenTarget):
    """Where all actions are forbidden, which is no mistake at the end, the softmax is 0/0."""

    def __call__(self, batch, online, target, risk, taus):
        z = super().__call__(batch, online, target, risk, taus)
        if batch.next_masks is None:
            return z
        return replace(z, atoms=z.atoms.where(batch.next_masks.any(dim=1, keepdim=True), torch.nan))


@wrong("gives a target with a deviation of .* where the discount is 0")
class NoisyRewards(Changed):
    def after(self, z, batch):
        steps = torch.linspace(0, 1, z.atoms.shape[1])
        return replace(z, atoms=z.atoms + steps)


@wrong("adds -0.01 to every reward where the discount is 0")
class CostOfLiving(Changed):
    def after(self, z, batch):
        return z.affine(-0.01, 1.0)


@wrong("does not halve the next return when the discounts are halved")
class OwnDiscount(Changed):
    def before(self, batch):
        return replace(batch, discounts=0.99 * (batch.discounts > 0))


@wrong("does not depend on the next observations")
class BootstrapsFromHere(Changed):
    def before(self, batch):
        return replace(batch, next_observations=batch.observations)


@wrong("another target when the batch is (permuted|split)")
class CentredBatch(Changed):
    def after(self, z, batch):
        return z.affine(batch.discounts * batch.next_observations.mean(), 1.0)


@wrong("changes when the returns of an action that is not allowed are")
class IgnoresMasks(Changed):
    def before(self, batch):
        return replace(batch, next_masks=None)


@wrong("changes when the returns of an action that is not allowed are")
class IgnoresMasksHere(MunchausenTarget):
    def __call__(self, batch, online, target, risk, taus):
        return super().__call__(replace(batch, masks=None), online, target, risk, taus)


@wrong("changes when the returns of an action that is not allowed are")
class LeavesATrace(GoodTarget):
    """It adds a little of the mean over all actions, whether they are allowed or not."""

    def __call__(self, batch, online, target, risk, taus):
        z = super().__call__(batch, online, target, risk, taus)
        values = target.head.value(target.features(batch.next_observations), risk, taus)
        return z.affine(1e-3 * batch.discounts * values.mean(dim=1), 1.0)


@pytest.mark.parametrize(("target", "words"), WRONG)
def test_a_wrong_target_gets_its_sentence(target, words):
    with pytest.raises(PartError, match=f"^target {target.__name__} .*{words}"):
        check_target(target())
