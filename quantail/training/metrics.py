"""The rows of metrics and timing that a run logs."""

from typing import Any

from quantail.collecting.clock import Clock
from quantail.learning.learner import Learner
from quantail.replay import ReplayStore
from quantail.stateful import State, require_keys, require_numbers
from quantail.training.counters import Counters


class Metrics:
    """Makes the rows, with means and rates since the previous one."""

    def __init__(
        self,
        frames_per_step: int,
        counters: Counters,
        clock: Clock,
        learner: Learner,
        store: ReplayStore,
    ) -> None:
        self.frames_per_step, self.counters, self.clock = frames_per_step, counters, clock
        self.learner, self.store = learner, store
        self._seconds, self._steps = 0.0, 0  # at the last row

    def rows(self, epsilon: float, recorded: dict[str, float]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the next rows of metrics.csv and timing.csv; `recorded` comes from callbacks."""
        counters, report = self.counters, self.learner.report()
        counters.last_loss = report.loss
        recent_return, recent_length = counters.recent_means()
        both = {"steps": counters.steps, "frames": counters.steps * self.frames_per_step}
        metrics = both | {
            "updates": self.learner.updates,
            "episodes": counters.episodes,
            "epsilon": epsilon,
            "loss": report.loss,
            "value": report.value,
            "recent_return": recent_return,
            "recent_length": recent_length,
            "replay_steps": len(self.store),
            **report.metrics,
            **recorded,
        }
        seconds = self.clock.training_seconds
        passed = max(seconds - self._seconds, 1e-9)
        timing = both | {
            "seconds": round(seconds, 3),
            "steps_per_second": round((counters.steps - self._steps) / passed, 3),
            "updates_per_second": round(report.updates / passed, 3),
        }
        self._seconds, self._steps = seconds, counters.steps
        return metrics, timing

    def state_dict(self) -> dict[str, Any]:
        return {"seconds": self._seconds, "steps": self._steps}

    def load_state_dict(self, state: State) -> None:
        require_keys(state, ("seconds", "steps"))
        self._seconds, self._steps = state["seconds"], state["steps"]

    def check(self) -> None:
        require_numbers([self._seconds, self._steps])
