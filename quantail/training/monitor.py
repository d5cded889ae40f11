"""Describe the progress and the outcome of a run."""

import math

from quantail import registry
from quantail.collecting.clock import Clock
from quantail.collecting.collector import Collector
from quantail.envs.families import modules_of_env
from quantail.learning.learner import Learner
from quantail.runs.folder import RunFolder, RunInfo
from quantail.training.counters import Counters, Due
from quantail.training.progress import Status, Summary
from quantail.training.schedules import Schedules
from quantail.training.scores import Scores
from quantail.training.signals import StopSignals
from quantail.trust import modules_of, trust_flags


class Monitor:
    """Reads the parts of a run and changes none of them."""

    def __init__(
        self,
        info: RunInfo,
        folder: RunFolder,
        counters: Counters,
        due: Due,
        scores: Scores,
        clock: Clock,
        learner: Learner,
        schedules: Schedules,
        collector: Collector,
        signals: StopSignals,
    ) -> None:
        self.info, self.folder, self.counters, self.due = info, folder, counters, due
        self.scores, self.clock, self.learner, self.schedules = scores, clock, learner, schedules
        self.collector, self.signals = collector, signals

    @property
    def trust(self) -> str:
        """The --trust flags that commands on this run need, with a space before each."""
        code = self.info.config.names_of_code()
        return trust_flags(modules_of(code) | modules_of_env(self.info.env))

    def epsilon(self) -> float:
        """Return the probability of a random action in the next step."""
        return self.collector.epsilon(self.schedules.epsilon(self.counters.steps))

    def status(self) -> Status:
        s, steps = self.info.config, self.counters.steps
        return Status(
            steps=steps,
            total_steps=s.run.steps,
            frames=steps * self.info.frames_per_step,
            epsilon=self.epsilon(),
            loss=self.counters.last_loss,
            recent_return=self.counters.recent_means()[0],
            best_value=self.scores.values.get("best", math.nan),
        )

    def summary(self, stop_reason: str) -> Summary:
        """Return the outcome so far; `stop_reason` is that of a callback, or ""."""
        ended = self.due.has_ended(self.counters.steps, self.info.config.run.steps)
        s, steps = self.info.config, self.counters.steps
        return Summary(
            run=self.folder.path,
            steps=steps,
            total_steps=s.run.steps,
            frames=steps * self.info.frames_per_step,
            risk=registry.label("risk", s.risk.played),
            mean_only=self.learner.online.head.mean_only,
            scores=self.scores,
            seconds=dict(self.clock.seconds),
            updates=self.learner.updates,
            stopped_by="" if ended else self.signals.name or stop_reason,
            trust=self.trust,
        )
