"""The components of a run, by name: everything that its next step depends on."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn

from quantail.errors import QuantailError, damage
from quantail.runs.checkpoints import RESTORE_ERRORS, Checkpoint
from quantail.stateful import State, Stateful
from quantail.training.callbacks import COMPONENT, CallbackError


class Weights:
    """The weights of a network, in a component of their own so that an agent can be loaded alone."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network

    def state_dict(self) -> dict[str, NDArray[Any]]:
        return {name: value.cpu().numpy() for name, value in self.network.state_dict().items()}

    def load_state_dict(self, state: State) -> None:
        self.network.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})

    def check(self) -> None:
        """The learner checks that the weights of both of its networks are finite."""


class Components:
    """The list of components that a checkpoint consists of, in the order in which they are restored.

    A component that is not in this list does not exist for a resumed run.
    """

    def __init__(self, by_name: Mapping[str, Stateful], warn: Callable[[str], None]) -> None:
        self.by_name, self._warn = dict(by_name), warn
        self.failed: dict[str, CallbackError] = {}  # of callbacks, in the last save or restore

    def states(self) -> dict[str, State]:
        """Return the state of every component, after checking all of them.

        The state of a callback that fails is left out.
        """
        self.failed.clear()
        for name, component in self.by_name.items():
            with self._noting_failure(name), _naming(name):
                component.check()
        states = {}
        for name, component in self.by_name.items():
            if name not in self.failed:
                with self._noting_failure(name):
                    states[name] = component.state_dict()
        return states

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore every component and check it; raise an error that names the one that is damaged.

        A callback of the user may be new, or may not have been passed again. One that fails is no
        damage of the checkpoint.
        """
        self.failed.clear()
        for name in sorted(self.by_name.keys() ^ checkpoint.components):
            if not name.startswith(COMPONENT):
                verb = "lacks" if name in self.by_name else "has an unknown component"
                raise ValueError(f"it {verb} {name}")
            if name not in self.by_name:
                self._warn(
                    f"the run was saved with the callback {name.removeprefix(COMPONENT)}, which is not "
                    "among the callbacks now: it continues without it and does not keep its state."
                )
        saved = {name: one for name, one in self.by_name.items() if name in checkpoint.components}
        for name, component in saved.items():
            with self._noting_failure(name), _naming(name):
                component.load_state_dict(checkpoint.state_of(name))
        for name, component in saved.items():
            with self._noting_failure(name), _naming(name):
                component.check()

    def require_callbacks(self) -> None:
        """Raise the error of a callback that failed in the last save or restore."""
        for error in self.failed.values():
            raise error

    @contextmanager
    def _noting_failure(self, name: str) -> Iterator[None]:
        try:
            yield
        except CallbackError as error:
            self.failed.setdefault(name, error)


@contextmanager
def _naming(component: str) -> Iterator[None]:
    """Name the component in an error that its state raises."""
    try:
        yield
    except RESTORE_ERRORS as error:
        said = " ".join(damage(error).split()) or type(error).__name__
        raise QuantailError(f"its {component} is damaged: {said}.") from error
