"""Parameters and their optimizer."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from quantail.learning.optimizers import state_shapes

ALIGNED = 16  # floats: every parameter begins at a multiple of 64 bytes


class ParameterGroup:
    """Parameters with their optimizer.

    Where the optimizer works element by element, all parameters are views of one tensor, and their
    gradients are copied into another: the optimizer then updates a single tensor, which takes half the
    time for a small network. Names, shapes and values in a checkpoint are those of single parameters.
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], build: Callable[[list[nn.Parameter]], Any]
    ) -> None:
        self.parameters, self._build = list(parameters), build
        self._flat: nn.Parameter | None = None
        self._views: dict[nn.Parameter, Callable[[Tensor], Tensor]] = {}
        self._gradients: dict[nn.Parameter, Tensor] = {}  # the tensors into which gradients are copied
        self.optimizer = build(self.parameters)
        if getattr(self.optimizer, "elementwise", False):
            self._flatten()
            self.optimizer = build([self._whole])

    @property
    def _whole(self) -> nn.Parameter:
        assert self._flat is not None
        return self._flat

    @torch.no_grad()
    def _flatten(self) -> None:
        offset = 0
        for parameter in self.parameters:
            self._views[parameter] = _view(parameter, offset)
            offset += -(-parameter.numel() // ALIGNED) * ALIGNED
        flat = self.parameters[0].new_zeros(offset)
        for parameter, view in self._views.items():
            view(flat).copy_(parameter)
            parameter.data = view(flat)
        self._flat = nn.Parameter(flat)
        self._whole.grad = torch.zeros_like(flat)
        self._gradients = {one: view(self._whole.grad) for one, view in self._views.items()}

    def zero_grad(self) -> None:
        """Clear all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self, gradient_clip: float = 0.0) -> None:
        """Update the parameters; if `gradient_clip` is above 0, clip their gradients first."""
        if self._flat is not None:
            self._gather()
        if gradient_clip:
            moved = self.parameters if self._flat is None else [self._whole]
            torch.nn.utils.clip_grad_norm_(moved, gradient_clip)
        if self._flat is not None and hasattr(self.optimizer, "step_whole"):
            self.optimizer.step_whole(self._flat)
        else:
            self.optimizer.step()

    def _gather(self) -> None:
        """Copy the gradients to where the optimizer reads them."""
        found = {one: one.grad for one in self.parameters if one.grad is not None}
        for one in self._gradients.keys() - found.keys():
            self._gradients[one].zero_()
        if found:
            torch._foreach_copy_([self._gradients[one] for one in found], list(found.values()))

    def state_of(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """Return what the optimizer keeps of a parameter; nothing before the first step."""
        if self._flat is None:
            return dict(self.optimizer.state[parameter])
        kept = self.optimizer.state[self._whole]
        return {name: self._part(value, parameter) for name, value in kept.items()}

    def state_shapes(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """Return tensors with the names, shapes and dtypes of `state_of` after a step."""
        if self._flat is None:
            return state_shapes(self._build, parameter)
        kept = state_shapes(self._build, self._whole)
        return {name: self._part(value, parameter) for name, value in kept.items()}

    def load_state(self, states: Mapping[nn.Parameter, Mapping[str, Tensor]]) -> None:
        """Restore what `state_of` returned for every parameter."""
        if not any(states.values()):
            return
        if self._flat is None:
            for parameter, state in states.items():
                kept = {name: value.clone() for name, value in state.items()}
                self.optimizer.state[parameter].update(kept)
            return
        kept = state_shapes(self._build, self._whole)
        for name, value in kept.items():
            parts = [(self._part(value, one), state[name]) for one, state in states.items()]
            for to, part in parts:
                to.copy_(part)
            if any(not torch.equal(to, part.to(to)) for to, part in parts):
                raise ValueError(f"its parameters do not agree on {name}, which they share")
        self.optimizer.state[self._whole].update(kept)

    def __deepcopy__(self, memo: dict[int, Any]) -> "ParameterGroup":
        """Return a group of copies, which are again views of one tensor."""
        copies = [copy.deepcopy(one, memo) for one in self.parameters]
        twin = ParameterGroup(copies, self._build)
        states = [self.state_of(one) for one in self.parameters]
        twin.load_state(dict(zip(copies, states, strict=True)))
        return twin

    def _part(self, value: Tensor, parameter: nn.Parameter) -> Tensor:
        """Return a parameter's part of what is kept of all, or the same for what is kept once."""
        return self._views[parameter](value) if value.shape == self._whole.shape else value


def _view(parameter: Tensor, offset: int) -> Callable[[Tensor], Tensor]:
    """Return the view of a flat tensor in which a parameter lies, in the order of its memory."""
    shape, strides = parameter.shape, parameter.stride()
    return lambda flat: torch.as_strided(flat, shape, strides, offset)
