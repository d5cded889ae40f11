"""The training loop: collect, store, learn, sync the target, evaluate, log and save."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from quantail.agents.agent import Agent
from quantail.errors import QuantailError
from quantail.evaluation.protocols import LONGEST
from quantail.runs.checkpoints import Checkpoint
from quantail.training.build import Parts
from quantail.training.callbacks import COMPONENT, CallbackError
from quantail.training.closing import call_all
from quantail.training.process import process_settings


class Trainer:
    """Runs the training loop from the first step or a checkpoint, until the run ends or is stopped.

    Call `run`. To drive the loop yourself, call `start`, then `step` within `process_settings`, and
    `close` at the end.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts, self.folder = parts, parts.folder
        self.info, self.config = parts.info, parts.info.config
        self.counters, self.due, self.clock = parts.counters, parts.due, parts.clock
        self.collector, self.replay, self.learner = parts.collector, parts.replay, parts.learner
        self.schedules, self.callbacks, self.signals = parts.schedules, parts.callbacks, parts.signals
        self._started = False
        self._saved: Any = None  # when the last checkpoint was written, and what was due then

    @property
    def steps(self) -> int:
        """The number of steps so far, over all environments."""
        return self.counters.steps

    @property
    def agent(self) -> Agent:
        return self.parts.agent

    def process_settings(self) -> AbstractContextManager[None]:
        """Return the process-wide settings of the run, for those who call `step` themselves."""
        return process_settings(self.info.threads, self.config.learner.precision)

    # The loop

    def run(self) -> Agent:
        """Train for the number of steps in the settings and return the agent.

        On Ctrl-C or SIGTERM, save, report how to resume, and then raise what the signal would raise.
        """
        with self.process_settings():
            self.start()
            with self._closing_after_errors(), self._explaining(), self.signals:
                self._loop()
            with self._explaining():
                self.close()
        self.agent.checkpoint = self.steps
        self.signals.raise_signal()
        return self.agent

    def start(self) -> None:
        """Start the environments and the callbacks; does nothing if they were started before."""
        if self._started:
            return
        with self._closing_after_errors(), self._explaining():
            for _ in range(self.collector.start()):
                self.callbacks.warn(
                    f"{self.info.env} did not give the same observations and rewards when its episode "
                    "was replayed from its seed: the episode is truncated, and the run continues but is "
                    "not an exact continuation."
                )
            self.callbacks.start()
        self._started = True

    def _loop(self) -> None:
        while True:
            self._between_steps()
            stopped = self.signals.name or self.callbacks.stop_reason
            if stopped or self.steps >= self.config.run.steps:
                break
            self.step()
            self.callbacks.step(self.parts.recorder.take_ended())
        if not self._is_saved():
            self.save()
        self.callbacks.end()
        if self.callbacks.has_recorded():
            self._write_rows()  # after the checkpoint, so a resumed run removes them again

    def step(self) -> None:
        """Collect the next transitions and make the updates that are due."""
        s, before = self.config, self.steps
        if risk := self.schedules.risk(before):
            self.collector.set_risk(risk.behaviour)
            self.learner.risk = risk.target
        transitions = self.collector.collect(self.parts.monitor.epsilon())
        with self.clock.phase("replay"):
            for transition in transitions:
                self.parts.recorder.add(transition)
        if self.steps >= s.learner.learning_starts:
            since = max(before, s.learner.learning_starts - 1)
            for _ in range(self.steps // s.learner.train_frequency - since // s.learner.train_frequency):
                self._update()
        if self.steps // s.learner.target_update_interval > before // s.learner.target_update_interval:
            self.learner.sync_target()

    def _update(self) -> None:
        rate = self.schedules.learning_rate(self.steps)
        if rate is not None:
            self.learner.set_learning_rate(rate)
        with self.clock.phase("replay"):
            batch = self.replay.sample(self.replay.sampler.importance(self.steps))
        with self.clock.phase("learning"):
            priorities = self.learner.update(batch)
        with self.clock.phase("replay"):
            self.replay.update_priorities(batch.indices, priorities)

    # Between steps

    def _between_steps(self) -> None:
        """Evaluate, log and save if it is time to.

        The evaluation comes first, so that the row of a step has what callbacks record of it.
        """
        s, new_best = self.config, None
        if self._is_due("evaluation", s.evaluation.evaluation_every):
            new_best = self._evaluate()
            if new_best is None:
                return  # a resumed run evaluates and logs at this step
        if self._is_due("log", s.run.log_every):
            self._log()
        if self.due.is_due("checkpoint", self.steps, s.run.checkpoint_every) or new_best:
            self.save()

    def _is_due(self, what: str, every: int) -> bool:
        """Return whether an evaluation or a row is due: at regular intervals, and at the end."""
        finished = self.steps >= self.config.run.steps
        return self.due.is_due(what, self.steps, every) or (
            finished and self.due.is_missing(what, self.steps)
        )

    def _log(self) -> None:
        if warning := self.parts.memory.warning(self.config.run.steps - self.steps):
            self.callbacks.warn(warning)
        self.due.done("log", self.steps)
        self._write_rows()

    def _write_rows(self) -> None:
        rows = self.parts.metrics.rows(self.parts.monitor.epsilon(), self.callbacks.take_recorded())
        self.callbacks.log(*rows)

    def _evaluate(self) -> bool | None:
        """Evaluate the agent and return whether it is the best so far; None if a signal stopped it."""
        self.callbacks.evaluation_start()
        with self.clock.phase("evaluation"):
            result = self.parts.evaluator.evaluate(self.steps, lambda: bool(self.signals.name))
        if result is None:
            return None
        self.due.done("evaluation", self.steps)
        best = self.parts.scores.update(self.steps, result)
        self.callbacks.evaluation(result)
        if not self.config.environment.max_episode_steps and result.lengths.max() >= LONGEST:
            self.callbacks.warn(
                f"an evaluation episode was truncated after {LONGEST:,} steps: "
                "set max_episode_steps if episodes of this environment may not end."
            )
        return best

    # Checkpoints

    def save(self, *, announce: bool = True) -> None:
        """Write a checkpoint from which the run can be resumed exactly; tell the callbacks of it."""
        self.due.done("checkpoint", self.steps)
        with self.clock.phase("files"):
            path = self.parts.saver.save(self.steps)
        self._saved = self._when()
        if announce:
            self.parts.saver.components.require_callbacks()
            self.callbacks.checkpoint(path)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore the state of a checkpoint; `start` then continues its episodes."""
        try:
            self.parts.saver.restore(checkpoint)
        except BaseException as error:
            with suppress(Exception):
                self.collector.close()
            if not isinstance(error, CallbackError):
                raise
            raise QuantailError(
                f"{error}: fix it, or resume without it; the run is unchanged."
            ) from error
        self._saved = self._when()

    def _is_saved(self) -> bool:
        return bool(self._saved == self._when())

    def _when(self) -> tuple[int, dict[str, int]]:
        return self.steps, self.due.state_dict()

    # The end

    def close(self) -> None:
        """Close the callbacks and the environments, all of them; then raise the first error."""
        call_all([self.callbacks.close, self.collector.close, self.parts.evaluator.close])

    @contextmanager
    def _closing_after_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with suppress(Exception):  # the first error is the one to raise
                self.close()
            raise

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """If a callback fails, save the run and say in one sentence how to continue it."""
        try:
            yield
        except CallbackError as error:
            if not self._is_saved():
                with suppress(CallbackError):  # of on_warning, when the checkpoint is written
                    self.save(announce=False)
            failed = [name.removeprefix(COMPONENT) for name in self.parts.saver.components.failed]
            saved = f"saved without the state of {', '.join(failed)}" if failed else "saved"
            ended = self.due.has_ended(self.steps, self.config.run.steps)
            how = f", continue with quantail resume {self.folder.path}{self.parts.monitor.trust}"
            raise QuantailError(f"{error}: the run is {saved}{'' if ended else how}.") from error
