"""Optimizers, by the names that settings use."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from quantail.errors import QuantailError
from quantail.learning.config import LearnerConfig
from quantail.networks.heads import AuxiliaryOptimizer
from quantail.parts import Group
from quantail.settings import NATURE, QR, setting


@dataclass(frozen=True)
class AdamConfig(Group):
    """The ε of Adam."""

    adam_epsilon: float = setting(0.01 / 32, "epsilon of Adam", source=QR, least=1e-10)


class Adam(torch.optim.Adam):
    """Adam (Kingma and Ba 2015), in one fused call."""

    Config = AdamConfig
    elementwise = True  # every element moves on its own, so parameters may be joined in one tensor

    def __init__(self, parameters: Iterable[Tensor], lr: float, config: AdamConfig) -> None:
        super().__init__(parameters, lr=lr, eps=config.adam_epsilon, fused=True)

    @torch.no_grad()
    def step_whole(self, parameter: Tensor) -> None:
        """Take the same step for a single parameter, in half the time if it is small.

        It calls the fused kernel directly; `step` spends more time in Python.
        """
        (group,), state, gradient = self.param_groups, self.state[parameter], parameter.grad
        if not state or gradient is None or type(self) is not Adam:  # or before the first step
            self.step()
            return
        beta1, beta2 = group["betas"]
        state["step"] += 1
        torch._fused_adam_(
            [parameter], [gradient], [state["exp_avg"]], [state["exp_avg_sq"]], [], [state["step"]],
            lr=group["lr"], beta1=beta1, beta2=beta2, weight_decay=group["weight_decay"],
            eps=group["eps"], amsgrad=False, maximize=False,
        )  # fmt: skip


class CenteredRMSProp(torch.optim.Optimizer):
    """DQN's RMSProp: g / √(E[g²] − E[g]² + ε), with ε inside the root (torch's own has it outside)."""

    elementwise = True

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


@dataclass(frozen=True)
class RMSPropConfig(Group):
    """The ε of RMSProp."""

    rmsprop_epsilon: float = setting(
        0.01 / 32**2, "epsilon of RMSProp, inside the square root", source=NATURE, least=1e-12
    )


class RMSProp(CenteredRMSProp):
    """The centered RMSProp of DQN, with its decay 0.95."""

    Config = RMSPropConfig

    def __init__(self, parameters: Iterable[Tensor], lr: float, config: RMSPropConfig) -> None:
        super().__init__(parameters, lr, 0.95, config.rmsprop_epsilon)


OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {"adam": Adam, "rmsprop": RMSProp}


def build_optimizer(config: LearnerConfig, parameters: list[nn.Parameter]) -> Any:
    """Return the optimizer that the configuration names.

    A class without a `Config`, such as torch.optim:AdamW, gets the learning rate alone.
    """
    optimizer = config.optimizer.find()
    if not hasattr(optimizer, "Config"):
        return optimizer(parameters, lr=config.learning_rate)
    return config.optimizer.build(parameters, config.learning_rate)


def state_shapes(build: Callable[[list[nn.Parameter]], Any], parameter: Tensor) -> dict[str, Tensor]:
    """Return tensors with the names, shapes and dtypes of an optimizer's state for a parameter.

    The optimizer takes one step on a copy of the parameter.
    """
    copy = nn.Parameter(parameter.detach().clone())
    copy.grad = torch.zeros_like(copy)
    optimizer = build([copy])
    optimizer.step()
    state: dict[str, Any] = optimizer.state[copy]
    for name, value in state.items():
        if not isinstance(value, Tensor):
            raise QuantailError(
                f"optimizer {type(optimizer).__name__} has {name} of type {type(value).__name__} in its "
                "state: a run can be saved only if the state of its optimizer consists of tensors."
            )
    return state


def build_auxiliary(
    about: AuxiliaryOptimizer, batch_size: int, parameters: list[nn.Parameter]
) -> CenteredRMSProp:
    """Return an optimizer that a head needs besides the main one.

    The ε that papers state belongs to the gradient of the *sum* over the batch. Ours is the gradient of
    the mean, so ε, which is added to the squared gradient, is divided by the batch size squared.
    """
    return CenteredRMSProp(parameters, about.learning_rate, 0.95, about.epsilon / batch_size**2)
