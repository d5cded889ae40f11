"""Callbacks: code that a run calls after steps, episodes, log rows, evaluations and checkpoints."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError, reason_of
from quantail.evaluation.evaluate import Evaluation
from quantail.stateful import State, Stateful, require_storable
from quantail.training.closing import call_all
from quantail.training.progress import FinishedEpisode, Progress


class Callback:
    """Base class for your own code in a run. Override the methods that you need.

        class Target(quantail.Callback):
            def on_evaluation(self, progress):
                if progress.evaluation.mean >= 475:
                    progress.stop("the target is reached")

        quantail.train("CartPole-v1", callbacks=[Target()])

    Every method gets the `Progress` of the run. Pass a callback again to `quantail.resume`. If it has a
    state that should survive, override `state_dict` and `load_state_dict`: the state is part of every
    checkpoint, under the name of the class.
    """

    def on_start(self, progress: Progress) -> None:
        """Called once before the first step of this session, when everything is built or restored."""

    def on_step(self, progress: Progress) -> None:
        """Called after every step, so it must be fast."""

    def on_episode_end(self, progress: Progress) -> None:
        """Called after an episode has ended."""

    def on_log(self, progress: Progress) -> None:
        """Called with each new row of metrics."""

    def on_evaluation_start(self, progress: Progress) -> None:
        """Called before an evaluation."""

    def on_evaluation(self, progress: Progress) -> None:
        """Called after an evaluation."""

    def on_checkpoint(self, progress: Progress) -> None:
        """Called after a checkpoint was written."""

    def on_warning(self, progress: Progress) -> None:
        """Called with each warning, which does not stop the run."""

    def on_end(self, progress: Progress) -> None:
        """Called when the run has ended or was stopped, and is saved.

        What is recorded here, and what had no row yet, becomes one more row of metrics.csv.
        """

    def on_close(self, progress: Progress) -> None:
        """Called last, also after an error, to release what the callback holds."""

    def state_dict(self) -> State:
        """Return the state that a checkpoint saves, as JSON values and NumPy arrays."""
        return {}

    def load_state_dict(self, state: State) -> None:
        """Restore what `state_dict` returned."""

    def check(self) -> None:
        """Raise an error if the state is not a possible one."""


EVENTS = tuple(name for name in vars(Callback) if name.startswith("on_"))


CALLBACKS: dict[str, type[Callback]] = {}  # the built-in ones by name
COMPONENT = "callback."  # before the class name of a user's callback, in a checkpoint


class CallbackError(QuantailError):
    """A callback of the user raised an error."""


class Callbacks:
    """The callbacks of a run, with the progress that they see.

    `loggers` are built in and are called first, so that all rows are written when a callback of the user
    fails; an error of theirs, such as a full disk, is raised as it is.
    """

    def __init__(
        self, loggers: Mapping[str, Callback], callbacks: Sequence[Callback], progress: Progress
    ) -> None:
        self.progress, self._loggers = progress, dict(loggers)
        progress._warn = self.warn
        self._users = [one for one in callbacks if _overrides(one, "state_dict")]
        # Only those that override it: most runs have no callback after a step.
        self._of = {
            event: [one for one in (*loggers.values(), *callbacks) if _overrides(one, event)]
            for event in EVENTS
        }
        self._started = False
        self._waiting: list[str] = []  # warnings from before the start

    def components(self) -> dict[str, Stateful]:
        """Return the callbacks with a state by the names of their components."""
        users = {
            f"{COMPONENT}{type(one).__name__}": _UserState(one, self._naming) for one in self._users
        }
        loggers = {k: v for k, v in self._loggers.items() if _overrides(v, "state_dict")}
        return {"progress": self.progress, **loggers, **users}

    def start(self) -> None:
        self._call("on_start")
        self._started = True
        waiting, self._waiting = self._waiting, []
        for sentence in waiting:
            self.warn(sentence)

    def warn(self, sentence: str) -> None:
        """Hand a warning to the callbacks; one from before the start waits for it."""
        if not self._started:
            self._waiting.append(sentence)
            return
        self.progress._warning = sentence
        self._call("on_warning")

    def step(self, ended: Sequence[FinishedEpisode]) -> None:
        """Call after a step, with the episodes that ended in it."""
        for one in self._of["on_episode_end"] if ended else ():
            for episode in ended:
                self.progress._episode = episode
                self._call_one(one, "on_episode_end")
        self._call("on_step")

    def log(self, metrics: Mapping[str, Any], timing: Mapping[str, Any]) -> None:
        self.progress._metrics, self.progress._timing = dict(metrics), dict(timing)
        self._call("on_log")

    def evaluation_start(self) -> None:
        self._call("on_evaluation_start")

    def evaluation(self, evaluation: Evaluation) -> None:
        self.progress._evaluation = evaluation
        self._call("on_evaluation")

    def checkpoint(self, path: Path) -> None:
        self.progress._checkpoint = path
        self._call("on_checkpoint")

    def end(self) -> None:
        self._call("on_end")

    def close(self) -> None:
        """Close every callback, then raise the first error."""
        call_all(partial(self._call_one, one, "on_close") for one in self._of["on_close"])

    def has_recorded(self) -> bool:
        """Return whether callbacks have recorded anything since the last row of metrics.csv."""
        return bool(self.progress._recorded)

    def take_recorded(self) -> dict[str, float]:
        """Return what callbacks have recorded since the last row of metrics.csv."""
        recorded, self.progress._recorded = self.progress._recorded, {}
        return recorded

    @property
    def stop_reason(self) -> str:
        """Why a callback stops the run; "" if none does."""
        return self.progress._stop_reason

    def _call(self, event: str) -> None:
        for one in self._of[event]:
            self._call_one(one, event)

    def _call_one(self, callback: Callback, event: str) -> None:
        if callback in self._loggers.values():
            getattr(callback, event)(self.progress)
            return
        with self._naming(callback, event):
            getattr(callback, event)(self.progress)

    @contextmanager
    def _naming(self, callback: Callback, method: str) -> Iterator[None]:
        """Name the callback of the user in an error that one of its methods raises."""
        try:
            yield
        except Exception as error:
            raise CallbackError(
                f"the callback {type(callback).__name__} failed in {method} at step "
                f"{self.progress.steps:,} ({reason_of(error)})"
            ) from error


class _UserState:
    """The state of a user's callback as a component: its errors are those of the callback."""

    def __init__(
        self, callback: Callback, naming: Callable[[Callback, str], AbstractContextManager[None]]
    ) -> None:
        self.callback, self._naming = callback, naming

    def state_dict(self) -> State:
        with self._naming(self.callback, "state_dict"):
            state = self.callback.state_dict()
            require_storable(state)
        return state

    def load_state_dict(self, state: State) -> None:
        with self._naming(self.callback, "load_state_dict"):
            self.callback.load_state_dict(state)

    def check(self) -> None:
        with self._naming(self.callback, "check"):
            self.callback.check()


def callback_list(callbacks: Iterable[Callback] | None) -> list[Callback]:
    """Return the callbacks that a user passes; None means none.

    Raise an error for what is not a callback, and for two states of the same name.
    """
    if isinstance(callbacks, Callback):
        name = type(callbacks).__name__
        raise QuantailError(f"callbacks takes a list of callbacks: write callbacks=[{name}(...)].")
    if callbacks is not None and not isinstance(callbacks, Iterable):
        raise QuantailError(f"callbacks takes a list of callbacks, not {callbacks!r}.")
    found = list(callbacks or ())
    for one in found:
        if not isinstance(one, Callback):
            raise QuantailError(
                f"callbacks takes instances of quantail.Callback, not {one!r}"
                f"{': make one with ()' if isinstance(one, type) else ''}."
            )
    names = [type(one).__name__ for one in found if _overrides(one, "state_dict")]
    for name in names:
        if names.count(name) > 1:
            raise QuantailError(
                f"callbacks has two of class {name}, whose states would be saved under one name: give "
                "one of them a class of its own."
            )
    return found


def _overrides(callback: Callback, method: str) -> bool:
    return getattr(type(callback), method) is not getattr(Callback, method)
