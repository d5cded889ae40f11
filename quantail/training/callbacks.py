"""Callbacks: your own code in a run, called after steps, episodes, evaluations and checkpoints."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quantail.agents.actor import Episode
from quantail.agents.agent import Agent
from quantail.errors import QuantailError
from quantail.evaluation import Evaluation
from quantail.runs.tables import METRICS
from quantail.training.reporter import Status
from quantail.validation import number


class Progress:
    """What a callback knows of a run. It may `stop` the run and `record` metrics, and change nothing."""

    def __init__(self, run: Path, agent: Agent, status: Callable[[], Status]) -> None:
        self._run, self._agent, self._status = run, agent, status
        self._metrics: Mapping[str, Any] = {}
        self._episode: Episode | None = None
        self._evaluation: Evaluation | None = None
        self._checkpoint: Path | None = None
        self._recorded: dict[str, float] = {}
        self._stop_reason = ""

    @property
    def run(self) -> Path:
        """The folder of the run."""
        return self._run

    @property
    def agent(self) -> Agent:
        """The agent as it is now, to act and to look at its return distributions."""
        return self._agent

    @property
    def status(self) -> Status:
        """Steps, frames, ε, the last loss, the mean of recent returns and the best value so far."""
        return self._status()

    @property
    def steps(self) -> int:
        """The number of steps so far, over all environments."""
        return self._status().steps

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The last row of metrics.csv; empty before the first."""
        return dict(self._metrics)

    @property
    def episode(self) -> Episode | None:
        """The episode that ended last: its seed, its actions and its return `score`."""
        return self._episode

    @property
    def evaluation(self) -> Evaluation | None:
        """The last evaluation."""
        return self._evaluation

    @property
    def checkpoint(self) -> Path | None:
        """The folder of the last checkpoint."""
        return self._checkpoint

    def stop(self, reason: str) -> None:
        """End the run after this step: it is saved, and can be resumed."""
        self._stop_reason = str(reason) or "a callback"

    def record(self, name: str, value: float) -> None:
        """Put a number into the next row of metrics.csv, as a column of this name."""
        require_metric_name(name)
        self._recorded[name] = number(f"metric {name}", value)


class Callback:
    """Your own code in a run. Override the methods that you need; each gets the `Progress` of the run.

        class Target(quantail.Callback):
            def on_evaluation(self, progress):
                if progress.evaluation.mean >= 475:
                    progress.stop("the target is reached")

        quantail.train("CartPole-v1", callbacks=[Target()])

    A callback is not part of a checkpoint: pass it again to `quantail.resume`.
    """

    def on_step(self, progress: Progress) -> None:
        """Called after every step, so it must be fast."""

    def on_episode_end(self, progress: Progress) -> None:
        """Called after an episode has ended."""

    def on_evaluation(self, progress: Progress) -> None:
        """Called after an evaluation."""

    def on_checkpoint(self, progress: Progress) -> None:
        """Called after a checkpoint was written."""

    def on_end(self, progress: Progress) -> None:
        """Called when the run has ended or was stopped, and is saved."""


CALLBACKS: dict[str, type[Callback]] = {}  # the built-in ones by name


class CallbackError(QuantailError):
    """A callback raised an error."""


class Callbacks:
    """The callbacks of a run, with the progress that they see."""

    def __init__(self, callbacks: Sequence[Callback], progress: Progress) -> None:
        for one in callbacks:
            if not isinstance(one, Callback):
                raise QuantailError(
                    f"callbacks takes instances of quantail.Callback, not {one!r}"
                    f"{': make one with ()' if isinstance(one, type) else ''}."
                )
        self.callbacks, self.progress = tuple(callbacks), progress
        # Only those that override it: most runs have no callback after a step.
        self._of = {
            event: [one for one in self.callbacks if _overrides(one, event)]
            for event in ("on_step", "on_episode_end", "on_evaluation", "on_checkpoint", "on_end")
        }

    def step(self) -> None:
        self._call("on_step")

    def episode_end(self, episode: Episode) -> None:
        self.progress._episode = episode
        self._call("on_episode_end")

    def evaluation(self, evaluation: Evaluation) -> None:
        self.progress._evaluation = evaluation
        self._call("on_evaluation")

    def checkpoint(self, path: Path) -> None:
        self.progress._checkpoint = path
        self._call("on_checkpoint")

    def end(self) -> None:
        self._call("on_end")

    def logged(self, metrics: Mapping[str, Any]) -> None:
        """Keep the last row of metrics.csv."""
        self.progress._metrics = dict(metrics)

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
            try:
                getattr(one, event)(self.progress)
            except Exception as error:
                message = " ".join(str(error).split()).rstrip(".")
                raise CallbackError(
                    f"the callback {type(one).__name__} failed in {event} at step "
                    f"{self.progress.steps:,} ({type(error).__name__}: {message})"
                ) from error


def require_metric_name(name: str) -> None:
    """Raise an error if a metric cannot be a new column of metrics.csv under this name."""
    if not isinstance(name, str) or not name.isidentifier():
        raise QuantailError(f"a metric takes a name of letters, digits and _, not {name!r}.")
    if name in METRICS:
        raise QuantailError(f"metric {name!r} is a column of metrics.csv already: choose another name.")


def _overrides(callback: Callback, event: str) -> bool:
    return getattr(type(callback), event) is not getattr(Callback, event)
