"""Each fault that the loss of a return head may have gets its own sentence from `check_head`."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from quantail.distributions import ReturnDistribution, select_actions
from quantail.networks.heads import AuxiliaryOptimizer
from quantail.testing import PartError, check_head
from tests.testing.good_head import GoodHead, ProposingHead
from tests.testing.wrong import collector

wrong, WRONG = collector()


class Changed(GoodHead):
    """A head whose `LossOutput` is changed afterwards."""

    def loss(self, features, actions, target, taus):
        return self.changed(super().loss(features, actions, target, taus))


# The form of the loss


@wrong("gave a Tensor when asked for the loss")
class BareLoss(Changed):
    def changed(self, output):
        return output.losses


@wrong(r"gave \(\) when asked for the losses .* must have the shape \(6,\)")
class MeanLoss(Changed):
    def changed(self, output):
        return replace(output, losses=output.losses.mean())


@wrong("gave numbers when asked for the losses .* that are not finite")
class LogOfNegative(Changed):
    def changed(self, output):
        return replace(output, losses=(-output.losses).log())


@wrong("gave losses without a gradient")
class DetachedLoss(Changed):
    def changed(self, output):
        return replace(output, losses=output.losses.detach())


@wrong("gave priorities with a gradient")
class LivePriorities(Changed):
    def changed(self, output):
        return replace(output, priorities=output.losses)


@wrong("gave values with a gradient")
class LiveValues(Changed):
    def changed(self, output):
        return replace(output, values=output.losses)


@wrong("gave metrics 'spread' with a gradient")
class LiveMetrics(Changed):
    def changed(self, output):
        return replace(output, metrics={"spread": output.losses})


@wrong("gave metrics of type list")
class ListOfMetrics(Changed):
    def changed(self, output):
        return replace(output, metrics=[output.losses])


@wrong("gave the priority -")
class NegativePriorities(Changed):
    def changed(self, output):
        return replace(output, priorities=-output.priorities)


@wrong(r"auxiliary losses named \[\] with optimizers\(\) named \['proposal'\]")
class ForgetsAuxiliary(ProposingHead):
    def loss(self, features, actions, target, taus):
        return replace(super().loss(features, actions, target, taus), auxiliary={})


@wrong("changed in place what it was given when asked for the loss")
class SortsTheTarget(GoodHead):
    def pinball(self, predictions, target):
        target.atoms.copy_(target.atoms.sort(dim=1).values)
        return super().pinball(predictions, target)


# What the loss depends on


@wrong("another loss when the same target is written with probs")
class IgnoresProbs(GoodHead):
    def pinball(self, predictions, target):
        return super().pinball(predictions, ReturnDistribution(target.atoms))


@wrong("another loss when the same target is written with its atoms in another order")
class MatchesAtoms(GoodHead):
    """It takes the first atom of a target for its lowest."""

    def pinball(self, predictions, target):
        known = super().pinball(predictions, target)
        return known + 0.1 * (predictions[:, 0] - target.atoms[:, 0]).square()


@wrong("gave torch.float32|gave atoms of torch.float32")
class AlwaysSingle(GoodHead):
    def distribution(self, features, taus):
        return ReturnDistribution(self.atoms(features).float())


@wrong("moves the returns of actions that were not taken, through out.weight")
class LearnsAllActions(GoodHead):
    def loss(self, features, actions, target, taus):
        output = super().loss(features, actions, target, taus)
        others = sum(
            self.pinball(select_actions(self.atoms(features), torch.full_like(actions, one)), target)
            for one in range(self.spec.num_actions)
        )
        return replace(output, losses=output.losses + others)


# Gradients


@wrong("gives unused no gradient in its loss with plain layers")
class Unused(GoodHead):
    def __init__(self, spec, config):
        super().__init__(spec, config)
        self.unused = nn.Parameter(torch.zeros(3))


@wrong("gives hidden.weight no gradient")
class DetachedLayer(GoodHead):
    def atoms(self, features):
        fixed = copy.deepcopy(self.hidden).requires_grad_(False)
        return self.out(torch.relu(fixed(features))).unflatten(1, (self.spec.num_actions, -1))


@wrong("gives its features no gradient")
class DetachedFeatures(GoodHead):
    def atoms(self, features):
        return super().atoms(features.detach())


@wrong("gives hidden.weight the slope .* where finite differences of its loss give")
class WrongGradient(GoodHead):
    def pinball(self, predictions, target):
        return super().pinball(2 * predictions - predictions.detach(), target)


@wrong("gives its features another gradient than finite differences")
class HalfDetached(GoodHead):
    def atoms(self, features):
        half = features.shape[1] // 2
        return super().atoms(torch.cat([features[:, :half].detach(), features[:, half:]], dim=1))


@wrong("gives its features a gradient that is not finite")
class RootAtZero(GoodHead):
    def atoms(self, features):
        zero = (self.hidden(features) * 0).sum(dim=1).square().sqrt()
        return super().atoms(features) + zero[:, None, None]


@wrong("gives proposal.weight a gradient in its loss, but the auxiliary loss 'proposal' alone")
class MainLossMovesProposals(ProposingHead):
    def atoms(self, features):
        return GoodHead.atoms(self, features) + self.proposed(features)[:, None, None]


@wrong("gives its features a gradient in its auxiliary loss 'proposal', but the loss alone")
class ProposalsMoveFeatures(ProposingHead):
    def proposed(self, features):
        return self.proposal(features).squeeze(1)


@wrong("gives hidden.weight a gradient in its auxiliary loss 'proposal', but the loss alone")
class ProposalsMoveTheRest(ProposingHead):
    def proposal_loss(self, features, target):
        own = super().proposal_loss(features, target)
        return own + self.hidden(features.detach()).square().sum(dim=1)


@wrong("gives proposal.bias no gradient in its auxiliary loss 'proposal'")
class ProposalsLackOne(ProposingHead):
    def proposed(self, features):
        return torch.nn.functional.linear(
            features.detach(), self.proposal.weight, self.proposal.bias.detach()
        ).squeeze(1)


@wrong("gives the optimizer 'proposal' a parameter that is not its own")
class ForeignParameter(ProposingHead):
    def optimizers(self):
        foreign = nn.Parameter(torch.zeros(2))
        return {"proposal": AuxiliaryOptimizer((foreign,), 1e-4, 1e-5)}


@wrong("gives a distribution without a gradient")
class DistributionDetached(GoodHead):
    @torch.no_grad()
    def distribution(self, features, taus):
        return super().distribution(features, taus)


@wrong("gives a value under neutral without a finite gradient")
class ValueDetached(GoodHead):
    def value(self, features, risk, taus, context=None):
        return super().value(features, risk, taus, context).detach()


@pytest.mark.parametrize(("head", "words"), WRONG)
def test_a_wrong_loss_gets_its_sentence(head, words):
    with pytest.raises(PartError, match=f"^head {head.__name__} .*{words}"):
        check_head(head)
