"""What a run tells while it goes on. The loop calls these; how it looks is not its concern."""

from dataclasses import dataclass
from pathlib import Path

from quantail.evaluation import Evaluation
from quantail.training.scores import Scores


@dataclass(frozen=True)
class Status:
    """Where a run stands."""

    steps: int
    total_steps: int
    frames: int
    epsilon: float
    loss: float
    recent_return: float
    best_value: float


@dataclass(frozen=True)
class Summary:
    """What a run came to."""

    run: Path
    steps: int
    total_steps: int
    frames: int
    risk: str
    head: str
    scores: Scores
    seconds: dict[str, float]
    updates: int
    stopped_by: str  # "" where the run came to its end
    trust: str = ""  # the flags that commands on this run need


class Reporter:
    """Says nothing. Others override what they want to show."""

    def opening(self, lines: dict[str, str]) -> None:
        """What is about to run, before any large block of memory is taken."""

    def started(self, status: Status) -> None:
        """Before the first step of this session."""

    def advanced(self, status: Status) -> None:
        """After each step: must be quick."""

    def evaluating(self) -> None:
        """Before an evaluation."""

    def evaluated(self, steps: int, policy: str, evaluation: Evaluation, best: bool) -> None:
        """After an evaluation."""

    def warned(self, sentence: str) -> None:
        """Something that the user should know and that does not stop the run."""

    def finished(self, summary: Summary) -> None:
        """At the end, or when stopped."""

    def close(self) -> None:
        """Whatever happened: give the terminal back."""
