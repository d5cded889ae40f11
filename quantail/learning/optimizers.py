"""Optimizers, by the names that settings use."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from quantail.networks.heads import AuxiliaryOptimizer
from quantail.settings import Settings


class CenteredRMSProp(torch.optim.Optimizer):
    """DQN's RMSProp: g / √(E[g²] − E[g]² + ε), with ε inside the root (torch's own has it outside)."""

    def __init__(self, parameters: Iterable[Tensor], lr: float, decay: float, eps: float) -> None:
        super().__init__(parameters, {"lr": lr, "decay": decay, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            keep = 1 - group["decay"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                gradient, state = parameter.grad, self.state[parameter]
                if not state:
                    state["mean"] = torch.zeros_like(parameter)
                    state["square"] = torch.zeros_like(parameter)
                state["mean"].lerp_(gradient, keep)
                state["square"].lerp_(gradient.square(), keep)
                variance = torch.addcmul(state["square"], state["mean"], state["mean"], value=-1)
                parameter.addcdiv_(
                    gradient, variance.clamp_(min=0).add_(group["eps"]).sqrt_(), value=-group["lr"]
                )


def build_optimizer(settings: Settings, parameters: list[nn.Parameter]) -> Any:
    """The optimizer that the settings name."""
    s = settings
    if s.optimizer == "rmsprop":
        return CenteredRMSProp(parameters, s.learning_rate, 0.95, s.rmsprop_epsilon)
    return torch.optim.Adam(parameters, lr=s.learning_rate, eps=s.adam_epsilon, fused=True)


def kept_of(optimizer: Any, parameter: Tensor) -> dict[str, Tensor]:
    """Return tensors with the names, shapes and dtypes of what an optimizer keeps of a parameter."""
    if isinstance(optimizer, CenteredRMSProp):
        return {"mean": parameter, "square": parameter}
    return {"step": torch.zeros(()), "exp_avg": parameter, "exp_avg_sq": parameter}


def build_auxiliary(about: AuxiliaryOptimizer, batch_size: int) -> CenteredRMSProp:
    """Return the optimizer that a head asks for beside the main one.

    The ε that papers state belongs to the gradient of the *sum* over the batch. Ours is the gradient of
    the mean, so ε, which stands beside the squared gradient, is divided by the batch size squared.
    """
    return CenteredRMSProp(about.parameters, about.learning_rate, 0.95, about.epsilon / batch_size**2)
