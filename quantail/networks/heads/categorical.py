"""Probabilities of fixed returns."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from quantail.distributions import ReturnDistribution, select_actions
from quantail.errors import QuantailError
from quantail.networks.heads.base import HeadSpec, LossOutput, ReturnHead, mlp_head
from quantail.networks.losses import categorical_divergence, project
from quantail.parts import Group
from quantail.settings import C51, setting
from quantail.taus import TauSampler


@dataclass(frozen=True)
class CategoricalConfig(Group):
    """Fixed returns, evenly spaced."""

    atoms: int = setting(51, "number of atoms of the categorical distribution", source=C51, least=2)
    value_min: float = setting(-10.0, "lowest return that the head represents (v_min)", source=C51)
    value_max: float = setting(10.0, "highest return that the head represents (v_max)", source=C51)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.value_min >= self.value_max:
            raise QuantailError(
                f"value_min {self.value_min:g} is not below value_max {self.value_max:g}: "
                "the head represents returns between them."
            )


class Categorical(ReturnHead):
    """Probabilities of fixed atoms (C51, Bellemare et al. 2017). Dueling on logits, as in Rainbow."""

    Config = CategoricalConfig
    supports_dueling = True
    config: CategoricalConfig
    atoms: Tensor

    def __init__(self, spec: HeadSpec, config: CategoricalConfig) -> None:
        super().__init__(spec, config)
        self.shape = (config.atoms, spec.num_actions)
        self.f = mlp_head(spec, config.atoms * spec.num_actions)
        self.v = mlp_head(spec, config.atoms) if spec.dueling else None
        atoms = torch.linspace(config.value_min, config.value_max, config.atoms)
        self.register_buffer("atoms", atoms, persistent=False)

    def log_probs(self, features: Tensor) -> Tensor:
        """Return log p_i(x, a), [B, A, M]."""
        return log_probs_of(features, self.shape, self.f, self.v)

    def distribution(self, features: Tensor, taus: TauSampler) -> ReturnDistribution:
        probs = self.log_probs(features).exp()
        return ReturnDistribution(self.atoms.expand_as(probs), probs)

    def loss(
        self, features: Tensor, actions: Tensor, target: ReturnDistribution, taus: TauSampler
    ) -> LossOutput:
        """C51: the divergence from the projected target, which is Rainbow's priority too."""
        log_probs = select_actions(self.log_probs(features), actions)  # [B, M]
        projected = project(target.atoms, target.probabilities(), self.atoms)
        losses = categorical_divergence(log_probs, projected)
        values = (log_probs.detach().exp() * self.atoms).sum(dim=1)
        return LossOutput(losses, losses.detach().clamp(min=0), values)

    def support(self) -> tuple[float, float]:
        return self.config.value_min, self.config.value_max

    @staticmethod
    def describe(config: CategoricalConfig) -> str:
        c = config
        return f"{c.atoms} atoms from {c.value_min:g} to {c.value_max:g}"


def log_probs_of(features: Tensor, shape: tuple[int, int], f: nn.Module, v: nn.Module | None) -> Tensor:
    """Return log p_i(x, a), [B, A, M], of f's logits for `shape` (M, A); with v they are dueling."""
    logits: Tensor = f(features).unflatten(1, shape)  # [B, M, A]
    if v is not None:
        logits = v(features).unsqueeze(2) + logits - logits.mean(dim=2, keepdim=True)
    return torch.log_softmax(logits, dim=1).transpose(1, 2)
