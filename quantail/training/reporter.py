"""The interface through which the training loop reports its progress."""

from dataclasses import dataclass
from pathlib import Path

from quantail.evaluation import Evaluation
from quantail.training.scores import Scores


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
    """The outcome of a run, when it has finished or was stopped."""

    run: Path
    steps: int
    total_steps: int
    frames: int
    risk: str
    mean_only: bool  # whether the agent learns the mean and no distribution
    scores: Scores
    seconds: dict[str, float]
    updates: int
    stopped_by: str  # the signal, or "" if the run finished
    trust: str = ""  # the --trust flags that commands on this run need


class Reporter:
    """Reports nothing. Subclasses override the methods that they need."""

    def opening(self, lines: dict[str, str]) -> None:
        """Called with a description of the run before large amounts of memory are allocated."""

    def started(self, status: Status) -> None:
        """Called before the first step of this session."""

    def advanced(self, status: Status) -> None:
        """Called after each step; must be fast."""

    def evaluating(self) -> None:
        """Called before an evaluation."""

    def evaluated(self, steps: int, policy: str, evaluation: Evaluation, best: bool) -> None:
        """Called after an evaluation."""

    def warned(self, sentence: str) -> None:
        """Called with a warning that does not stop the run."""

    def finished(self, summary: Summary) -> None:
        """Called when the run has finished or was stopped."""

    def close(self) -> None:
        """Called at the end, also after an error, to restore the terminal."""
