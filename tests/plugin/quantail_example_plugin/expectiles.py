"""A return head that learns expectiles."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

import quantail
from quantail.distributions import ReturnDistribution, select_actions
from quantail.networks import HeadSpec, LossOutput, ReturnHead, mlp_head
from quantail.taus import TauSampler, midpoints


@dataclass(frozen=True)
class ExpectilesConfig:
    """The head's own settings: `--head.count 21` on the command line."""

    count: int = quantail.setting(11, "number of expectiles of each action, odd", least=3)

    def __post_init__(self) -> None:
        if self.count % 2 == 0:
            raise ValueError(f"count takes an odd number, which includes the mean, not {self.count}.")


class Expectiles(ReturnHead):
    """N expectiles of every action, by expectile regression (ER-DQN, Rowland et al. 2019).

    The expectile e_τ minimises E[|τ − 1{Z < e}| (Z − e)²]; e_½ is the mean. Expectiles are no samples of
    the return: their spread is too small. Risk measures and targets need a distribution that *has* these
    expectiles, which `impute` finds. The paper solves for it numerically; here it has a closed form.
    """

    Config = ExpectilesConfig
    config: ExpectilesConfig

    def __init__(self, spec: HeadSpec, config: ExpectilesConfig) -> None:
        super().__init__(spec, config)
        # `mlp_head` builds a hidden layer and the outputs, noisy if the user asks for that.
        self.f = mlp_head(spec, config.count * spec.num_actions)
        self.register_buffer("taus", midpoints(config.count), persistent=False)

    def expectiles(self, features: Tensor) -> Tensor:
        """Return the expectiles of every action, [B, A, N]. They rise, so they cannot cross."""
        outputs = self.f(features).unflatten(1, (self.spec.num_actions, self.config.count))
        below, mean, above = outputs.split([self.config.count // 2, 1, self.config.count // 2], dim=-1)
        lower = mean - softplus(below).cumsum(dim=-1).flip(-1)
        return torch.cat([lower, mean, mean + softplus(above).cumsum(dim=-1)], dim=-1)

    def distribution(self, features: Tensor, taus: TauSampler) -> ReturnDistribution:
        return impute(self.expectiles(features), self.taus)

    def loss(
        self, features: Tensor, actions: Tensor, target: ReturnDistribution, taus: TauSampler
    ) -> LossOutput:
        """Return Σ_k E[|τ_k − 1{Z′ < e_k}| (Z′ − e_k)²], [B]; the priority is that of DQN."""
        predictions = select_actions(self.expectiles(features), actions)  # [B, N]
        means = predictions[:, self.config.count // 2].detach()
        losses = expectile_loss(predictions, self.taus, target)
        return LossOutput(losses, (target.mean() - means).abs(), means)

    @staticmethod
    def describe(config: ExpectilesConfig) -> str:
        return f"{config.count} expectiles"


def expectile_loss(predictions: Tensor, taus: Tensor, target: ReturnDistribution) -> Tensor:
    """Return the asymmetric squared loss of predictions [B, N] at taus [N], summed over N: [B]."""
    delta = target.atoms.unsqueeze(1) - predictions.unsqueeze(2)  # [B, N, M]
    weights = torch.where(delta < 0, 1 - taus.unsqueeze(1), taus.unsqueeze(1))
    return (target.probabilities().unsqueeze(1) * weights * delta.square()).sum(dim=(1, 2))


def impute(expectiles: Tensor, taus: Tensor) -> ReturnDistribution:
    """Return a distribution with these expectiles at taus [N]: [..., N] rising -> atoms [..., N − 1].

    That e is the expectile at τ says how far returns exceed e on average: with the mean m = e_½,

        U(e) = E[max(Z − e, 0)] = (e − m) (1 − τ)/(2τ − 1).

    U is convex, its slope at x is −P(Z > x), it is m − x on the far left and 0 on the far right. Joining
    the known points by straight lines, and continuing the first and the last line as far as that, gives
    the U of a distribution with atoms where the lines meet. Its expectiles and its mean are exact.

    Expectiles that were not learned well may belong to no distribution. Then the slopes are made to
    rise, the outermost atoms get at least the probability τ_1 each, and only the mean stays exact.
    """
    middle, least = len(taus) // 2, float(taus[0])
    outer = torch.arange(len(taus), device=taus.device) != middle
    mean, tau, x = expectiles[..., middle, None], taus[outer], expectiles[..., outer]  # x: [..., N − 1]
    excess = (x - mean) * (1 - tau) / (2 * tau - 1)  # U(x)
    gaps = x.diff(dim=-1).clamp(min=torch.finfo(x.dtype).tiny)
    slopes = (excess.diff(dim=-1) / gaps).clamp(min=least - 1, max=-least).cummax(dim=-1).values
    first, last = slopes[..., :1], slopes[..., -1:]
    lowest = x[..., :1] - (excess[..., :1] - mean + x[..., :1]) / (1 + first)
    highest = x[..., -1:] + excess[..., -1:] / -last
    atoms = torch.cat([lowest, x[..., 1:-1], highest], dim=-1)
    probs = torch.cat([1 + first, slopes.diff(dim=-1), -last], dim=-1)
    shift = mean - (probs * atoms).sum(dim=-1, keepdim=True)  # 0 unless the slopes were changed
    return ReturnDistribution(atoms + shift, probs)
