"""What a callback can see of a run."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsFloat

from quantail.agents.agent import Agent
from quantail.errors import QuantailError
from quantail.evaluation.evaluate import Evaluation
from quantail.runs.tables import METRICS
from quantail.stateful import State, require_keys, require_numbers
from quantail.training.counters import Counters
from quantail.training.scores import Scores
from quantail.validation import number


@dataclass(frozen=True)
class Status:
    """The current progress of a run."""

    steps: int
    total_steps: int
    frames: int
    epsilon: float
    loss: float
    recent_return: float
    best_value: float


@dataclass(frozen=True)
class Summary:
    """The outcome of a run so far, which is final when it has finished or was stopped."""

    run: Path
    steps: int
    total_steps: int
    frames: int
    risk: str
    mean_only: bool  # whether the agent learns the mean and no distribution
    scores: Scores
    seconds: dict[str, float]
    updates: int
    stopped_by: str  # the signal, or "a callback: " and its reason; "" if the run has reached its end
    trust: str = ""  # the --trust flags that commands on this run need


@dataclass(frozen=True)
class FinishedEpisode:
    """An episode of training that has ended."""

    steps: int  # of the run when it ended
    frames: int
    env: int  # the environment that played it
    seed: int
    actions: list[int]
    score: float  # the raw return
    terminated: bool  # rather than truncated


class Progress:
    """The state of a run, as callbacks see it. They may `stop` the run and `record` metrics.

    The last row of metrics, episode, evaluation, checkpoint and warning are those of this session: they
    are empty after a run was resumed.
    """

    def __init__(
        self,
        run: Path,
        description: Mapping[str, str],
        agent: Agent,
        counters: Counters,
        status: Callable[[], Status],
        summary: Callable[[str], Summary],
    ) -> None:
        self._run, self._description, self._agent = run, dict(description), agent
        self._counters, self._status, self._summary = counters, status, summary
        self._metrics: Mapping[str, Any] = {}
        self._timing: Mapping[str, Any] = {}
        self._episode: FinishedEpisode | None = None
        self._evaluation: Evaluation | None = None
        self._checkpoint: Path | None = None
        self._warning = ""
        self._warn: Callable[[str], None] = lambda sentence: None  # set by `Callbacks`
        self._recorded: dict[str, float] = {}
        self._stop_reason = ""

    @property
    def run(self) -> Path:
        """The folder of the run."""
        return self._run

    @property
    def description(self) -> Mapping[str, str]:
        """The environment, agent, learning, replay buffer and budget of the run, a line of text each."""
        return dict(self._description)

    @property
    def agent(self) -> Agent:
        """The agent as it is now, to act and to look at its return distributions."""
        return self._agent

    @property
    def status(self) -> Status:
        """Steps, frames, ε, the last loss, the mean of recent returns and the best value so far."""
        return self._status()

    @property
    def summary(self) -> Summary:
        """Scores, time per phase, and why the run has stopped."""
        return self._summary(self._stop_reason)

    @property
    def steps(self) -> int:
        """The number of steps so far, over all environments."""
        return self._counters.steps

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The last row of metrics.csv; empty before the first."""
        return dict(self._metrics)

    @property
    def timing(self) -> Mapping[str, Any]:
        """The last row of timing.csv; empty before the first."""
        return dict(self._timing)

    @property
    def episode(self) -> FinishedEpisode | None:
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

    @property
    def warning(self) -> str:
        """The last warning, a sentence; "" before the first."""
        return self._warning

    def stop(self, reason: str) -> None:
        """End the run after this step: it is saved, and can be resumed.

        `quantail.train` returns the agent, and the command line prints the reason and exits with 0.
        """
        self._stop_reason = f"a callback: {reason}" if str(reason) else "a callback"

    def warn(self, sentence: str) -> None:
        """Warn of something that does not stop the run, as the run's own warnings do."""
        self._warn(sentence)

    def record(self, name: str, value: SupportsFloat) -> None:
        """Put a number into the next row of metrics.csv, as a column of this name.

        In `on_evaluation`, that is the row of the same step if a row is due then. The number may be a
        tensor or an array without axes; NaN leaves the cell empty.
        """
        require_metric_name(name)
        found: Any = value
        if getattr(found, "ndim", None) == 0:  # a tensor, an array, a number of NumPy
            found = found.item()
        empty = isinstance(found, float) and math.isnan(found)
        self._recorded[name] = math.nan if empty else number(f"metric {name}", found)

    # What was recorded since the last row of metrics.csv is part of a checkpoint.

    def state_dict(self) -> dict[str, Any]:
        return {"recorded": {k: None if math.isnan(v) else v for k, v in self._recorded.items()}}

    def load_state_dict(self, state: State) -> None:
        require_keys(state, ("recorded",))
        self._recorded = {k: math.nan if v is None else v for k, v in state["recorded"].items()}

    def check(self) -> None:
        for name in self._recorded:
            require_metric_name(name)
        require_numbers(value for value in self._recorded.values() if value == value)


def require_metric_name(name: str) -> None:
    """Raise an error if a metric cannot be a new column of metrics.csv under this name."""
    if not isinstance(name, str) or not name.isidentifier():
        raise QuantailError(f"a metric takes a name of letters, digits and _, not {name!r}.")
    if name in METRICS:
        raise QuantailError(f"metric {name!r} is a column of metrics.csv already: choose another name.")
