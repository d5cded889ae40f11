"""What every torch module of Quantail keeps: its tensors, its state, its device, its first weights."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from quantail.testing.common import asking, close, require


def check_attributes(part: str, module: nn.Module) -> None:
    """Check that all tensors of a new module are parameters or buffers, which move with it."""
    for one in module.modules():
        for name, value in vars(one).items():
            require(
                not isinstance(value, Tensor),
                part,
                f"keeps the tensor {name} as a plain attribute",
                "a tensor must be a parameter or a buffer (register_buffer), so that it moves to the "
                "device and dtype of the network",
            )


def check_state(part: str, state: Mapping[str, Any]) -> None:
    """Check that a state_dict holds tensors alone."""
    for name, value in state.items():
        require(
            isinstance(value, Tensor),
            part,
            f"has {name} of type {type(value).__name__} in its state_dict",
            "a state_dict must hold tensors alone, because nothing is ever pickled",
        )


def check_start(part: str, build: Callable[[], nn.Module]) -> None:
    """Check that the first weights are a function of the seed under which a module is built."""
    states = []
    for seed in (1, 2):
        np.random.seed(seed)
        states.append(build().state_dict())
    check_state(part, states[0])
    for name, first in states[0].items():
        require(
            torch.equal(first, states[1][name]),
            part,
            f"starts {name} at other values each time",
            "initial weights must come from torch's generator, which Quantail seeds",
        )


def check_copies(
    part: str, module: nn.Module, other: nn.Module, ask: Callable[[Any], list[Any]]
) -> None:
    """Check that a copy and `other`, once it has the same state_dict, give the same answers."""
    expected = ask(module)
    state = {name: value.clone() for name, value in module.state_dict().items()}
    check_state(part, state)
    with asking(part, "load_state_dict of its own state_dict"):
        other.load_state_dict(state)
    with asking(part, "a deep copy"):
        copied = copy.deepcopy(module)
    for one, way in ((other, "loading its state_dict into a new one"), (copied, "a deep copy")):
        require(
            close(ask(one), expected, 1e-5),
            part,
            f"gives other answers after {way}",
            "all state that an answer depends on must be in its parameters and buffers",
        )
    randomise(copied)
    own = close(ask(module), expected, 1e-5) and not close(ask(copied), expected, 1e-5)
    require(
        own or not list(module.parameters()),
        part,
        "shares weights with its deep copy",
        "the target network is a deep copy, whose weights must be its own",
    )


def check_device(part: str, question: str, ask: Callable[[], Any]) -> None:
    """Check a question on torch's meta device: nothing may be left behind on the CPU."""
    try:
        ask()
    except Exception as error:  # that tensors on this device have no numbers is no fault
        message = str(error)
        require(
            "expected device" not in message and "same device" not in message,
            part,
            f"mixes tensors of two devices when asked for {question} on another device than the CPU",
            "it must move and create tensors on the device of what it is given",
        )


@torch.no_grad()
def randomise(module: nn.Module, seed: int = 0) -> None:
    """Move all weights a little, so that none is special, such as a layer that starts at zero."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.add_(torch.randn(parameter.shape, generator=generator).to(parameter), alpha=0.1)
