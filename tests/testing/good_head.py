"""A return head as a stranger would write it, which keeps every promise; the wrong heads change it."""

from dataclasses import dataclass

import torch
from torch import nn

from quantail.distributions import ReturnDistribution, select_actions
from quantail.errors import QuantailError
from quantail.networks import LossOutput, ReturnHead
from quantail.networks.heads import AuxiliaryOptimizer

ATOMS = 8


@dataclass(frozen=True)
class GoodConfig:
    width: float = 1.0


class GoodHead(ReturnHead):
    """Eight quantiles, learned with the plain quantile loss; it refuses dueling."""

    Config = GoodConfig

    def __init__(self, spec, config):
        super().__init__(spec, config)
        if spec.dueling:
            raise QuantailError("head good has no dueling layers: leave out dueling.")
        self.hidden = spec.linear(spec.num_features, spec.hidden)
        self.out = spec.linear(spec.hidden, ATOMS * spec.num_actions)
        self.register_buffer("fractions", (torch.arange(ATOMS) + 0.5) / ATOMS, persistent=False)

    def atoms(self, features):
        hidden = torch.relu(self.hidden(features))
        return self.out(hidden).unflatten(1, (self.spec.num_actions, ATOMS))

    def distribution(self, features, taus):
        return ReturnDistribution(self.atoms(features), comonotone=True)

    def loss(self, features, actions, target, taus):
        predictions = select_actions(self.atoms(features), actions)
        losses = self.pinball(predictions, target)
        return LossOutput(losses, losses.detach(), predictions.detach().mean(dim=1))

    def pinball(self, predictions, target):
        delta = target.atoms.unsqueeze(1) - predictions.unsqueeze(2)  # [B, M, M′]
        weights = torch.where(delta < 0, self.fractions.unsqueeze(1) - 1, self.fractions.unsqueeze(1))
        return (weights * delta * target.probabilities().unsqueeze(1)).sum(dim=(1, 2))


class ProposingHead(GoodHead):
    """It has a second network, with a loss and an optimizer of its own, that shifts all atoms."""

    def __init__(self, spec, config):
        super().__init__(spec, config)
        self.proposal = nn.Linear(spec.num_features, 1)

    def proposed(self, features):
        return self.proposal(features.detach()).squeeze(1)  # [B]

    def proposal_loss(self, features, target):
        return (self.proposed(features) - target.mean()).square()

    def atoms(self, features):
        return super().atoms(features) + self.proposed(features).detach()[:, None, None]

    def loss(self, features, actions, target, taus):
        output = super().loss(features, actions, target, taus)
        auxiliary = {"proposal": self.proposal_loss(features, target)}
        return LossOutput(output.losses, output.priorities, output.values, auxiliary)

    def optimizers(self):
        return {"proposal": AuxiliaryOptimizer(tuple(self.proposal.parameters()), 1e-4, 1e-5)}


class CategoricalHead(GoodHead):
    """Probabilities of eleven returns from −2 to 2, which are given all the same for each action."""

    def __init__(self, spec, config):
        super().__init__(spec, config)
        self.out = spec.linear(spec.hidden, 11 * spec.num_actions)
        self.register_buffer("returns", torch.linspace(-2, 2, 11))

    def logits(self, features):
        hidden = torch.relu(self.hidden(features))
        return self.out(hidden).unflatten(1, (self.spec.num_actions, 11))

    def distribution(self, features, taus):
        probs = self.logits(features).softmax(dim=2)
        return ReturnDistribution(self.returns.expand_as(probs), probs)

    def loss(self, features, actions, target, taus):
        logs = select_actions(self.logits(features).log_softmax(dim=2), actions)
        distance = (target.atoms.unsqueeze(2) - self.returns).abs() / 0.4
        shares = target.probabilities().unsqueeze(2) * (1 - distance).clamp(min=0)
        losses = -(shares.sum(dim=1) * logs).sum(dim=1)
        values = (logs.detach().exp() * self.returns).sum(dim=1)
        return LossOutput(losses, losses.detach().abs(), values)

    def support(self):
        return -2.0, 2.0


class SamplingHead(GoodHead):
    """It asks the sampler for its fractions: a quantile function that is linear between 17 knots."""

    KNOTS = 17

    def __init__(self, spec, config):
        super().__init__(spec, config)
        self.out = spec.linear(spec.hidden, self.KNOTS * spec.num_actions)
        self.register_buffer("knots", torch.arange(self.KNOTS))

    def quantiles(self, features, taus):
        distance = taus.to(features).unsqueeze(2) * (self.KNOTS - 1) - self.knots
        basis = (1 - distance.abs()).clamp(min=0)  # [B, T, knots]
        heights = self.out(torch.relu(self.hidden(features)))
        return basis @ heights.unflatten(1, (self.KNOTS, self.spec.num_actions))  # [B, T, A]

    def distribution(self, features, taus):
        returns = self.quantiles(features, taus(len(features), 32))
        return ReturnDistribution(returns.transpose(1, 2), comonotone=True)

    def loss(self, features, actions, target, taus):
        sampled = taus(len(features), 16).to(features)
        predictions = select_actions(self.quantiles(features, sampled).transpose(1, 2), actions)
        delta = target.atoms.unsqueeze(1) - predictions.unsqueeze(2)
        weights = torch.where(delta < 0, sampled.unsqueeze(2) - 1, sampled.unsqueeze(2))
        losses = (weights * delta * target.probabilities().unsqueeze(1)).sum(dim=(1, 2))
        return LossOutput(losses, losses.detach(), predictions.detach().mean(dim=1))
