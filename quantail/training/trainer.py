"""The training loop: collect, store, learn, evaluate and save, with exact resuming."""

import math
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from quantail import registry, seeds
from quantail.agents.actor import Actor, Episode, Transition
from quantail.agents.agent import Agent
from quantail.agents.schedules import linear
from quantail.collecting.clock import Clock
from quantail.collecting.collector import Collector, LocalCollector
from quantail.envs import EnvSource, make
from quantail.envs.adapt import Adapter
from quantail.envs.families import modules_of_env
from quantail.envs.training_reward import training_reward
from quantail.errors import QuantailError
from quantail.evaluation.evaluate import PARALLEL_EPISODES, EvaluationStopped, play_episodes
from quantail.evaluation.protocols import LONGEST
from quantail.files import sync_folder
from quantail.learning.learner import build_learner
from quantail.networks import ReturnNetwork, build_network
from quantail.replay import Replay, ReplayJournal, ReplayStore, build_sampler
from quantail.replay.memory import available_memory, human_bytes
from quantail.runs.checkpoints import Checkpoint, Checkpoints, check_state
from quantail.runs.folder import RunFolder, RunInfo
from quantail.runs.tables import TABLES, CsvTable
from quantail.training.callbacks import Callback, CallbackError, Callbacks, Progress
from quantail.training.process import process_settings
from quantail.training.reporter import Reporter, Status, Summary
from quantail.training.risk_config import RiskConfig
from quantail.training.scores import Scores
from quantail.training.signals import StopSignals
from quantail.training.sinks import open_sinks
from quantail.training.support import SupportWatch
from quantail.trust import modules_of, trust_flags

RECENT = 100  # episodes in the running mean of returns


class Trainer:
    """Runs the training loop from the first step or a checkpoint, until the run ends or is stopped."""

    def __init__(
        self,
        folder: RunFolder,
        info: RunInfo,
        source: EnvSource,
        risk_config: RiskConfig,
        device: torch.device,
        reporter: Reporter,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        s = info.settings
        self.folder, self.info, self.settings, self.reporter = folder, info, s, reporter
        self.source, self.risk_config, self.device = source, risk_config, device
        self.protocol = info.protocol
        self.generators = {name: seeds.generator(s.seed, name) for name in seeds.GENERATORS}
        network = build_network(
            s, info.observation, info.actions.count, seeds.derived_seed(s.seed, "weights")
        )
        self.learner = build_learner(
            s,
            network,
            risk_config.target,
            taus=self.generators["learning-taus"],
            noise=self.generators["learning-noise"],
            device=device,
        )
        self.store = ReplayStore(info.observation, s.total_envs, s.buffer_size)
        self.sampler = build_sampler(s, self.store, self.generators["replay"])
        self.replay = Replay(self.store, self.sampler, s.batch_size, s.n_step, s.discount)
        self.journal = ReplayJournal(folder.replay, self.store)
        self.clock = Clock()
        self.collector = self._build_collector(network)
        self.agent = Agent(network, s, info.observation, info.actions, source, risk_config.evaluation)
        self.callbacks = Callbacks(callbacks, Progress(folder.path, self.agent, self._status))
        self.checkpoints = Checkpoints(folder.checkpoints)
        self.tables = {name: CsvTable(folder.table(name), columns) for name, columns in TABLES.items()}
        self.sinks = open_sinks(s, folder.path)
        support = network.head.support()
        self.support = SupportWatch(*support) if support else None
        self._evaluation_envs: list[Adapter] = []
        self.signals = StopSignals()
        self._logged_seconds = 0.0
        self._warned_of_memory = False
        self._saved: dict[str, int] = {}  # done_at of the last checkpoint
        self._ended: list[Episode] = []  # episodes that ended in this step
        self._last = ""  # name of the last checkpoint that was saved or restored
        self._segments: dict[str, set[str]] = {}  # replay files of each resumable checkpoint
        self._undeleted: set[Path] = set()  # old files that the last save could not remove
        # Everything below is part of a checkpoint.
        self.steps = 0
        self.episodes = 0
        self.recent: deque[tuple[float, int]] = deque(maxlen=RECENT)
        self.last_loss = math.nan
        self.done_at = {"log": 0, "evaluation": -1, "checkpoint": 0}
        self.scores = Scores()

    def _build_collector(self, network: ReturnNetwork) -> Collector:
        s = self.settings
        if s.engine == "ray":
            from quantail.collecting.ray_collector import RayCollector

            return RayCollector(
                self.info,
                self.source,
                self.risk_config.behaviour,
                self.learner,
                self.clock,
                self.store.truncate,
                self.reporter.warned,
            )
        actor = Actor(
            [make(self.source, s) for _ in range(s.num_envs)],
            network,
            self.risk_config.behaviour,
            self.device,
            seeds=self.generators["episodes"],
            exploration=self.generators["exploration"],
            taus=self.generators["acting-taus"],
            noise=self.generators["acting-noise"],
            settings=s,
        )
        return LocalCollector(actor, self.clock, self.store.truncate)

    # The loop

    def run(self) -> Agent:
        """Train for the number of steps in the settings and return the agent.

        On Ctrl-C or SIGTERM, save, report how to resume, and then raise what the signal would raise.
        """
        with self.process_settings():
            return self._run()

    def process_settings(self) -> AbstractContextManager[None]:
        """Return the process-wide settings of the run, for those who call `step` themselves."""
        return process_settings(self.info.threads, self.settings.precision)

    def _run(self) -> Agent:
        self.collector.start()
        self.reporter.started(self._status())
        try:
            with self.signals:
                while True:
                    self._between_steps()
                    if self._is_over():
                        break
                    self.step()
                    self._call_back()
                self._finish()
        except CallbackError as error:
            if self.done_at["checkpoint"] < self.steps or self._saved != self.done_at:
                self.save(announce=False)
            raise QuantailError(
                f"{error}: the run is saved, continue with quantail resume {self.folder.path}."
            ) from error
        finally:
            self.close()
        self.signals.raise_signal()
        return self.agent

    def _call_back(self) -> None:
        """Call the callbacks after a step, when everything that it changes has been changed."""
        while self._ended:
            self.callbacks.episode_end(self._ended.pop(0))
        self.callbacks.step()

    def _is_over(self) -> bool:
        stopped = self.signals.name or self.callbacks.stop_reason
        return bool(stopped) or self.steps >= self.settings.steps

    def close(self) -> None:
        """Restore the terminal and close the environments."""
        self.reporter.close()
        self.collector.close()
        for env in self._evaluation_envs:
            env.close()

    def step(self) -> None:
        """Collect the next transitions and make the updates that are due."""
        s, before = self.settings, self.steps
        if s.risk_anneal_steps:
            fraction = linear(before, 0.0, 1.0, s.learning_starts, s.risk_anneal_steps)
            current = self.risk_config.at(fraction)
            self.collector.set_risk(current.behaviour)
            self.learner.risk = current.target
        transitions = self.collector.collect(self.epsilon)
        with self.clock.phase("replay"):
            for transition in transitions:
                self.steps += 1
                self._store(transition)
        if self.steps >= s.learning_starts:
            since = max(before, s.learning_starts - 1)
            for _ in range(self.steps // s.train_frequency - since // s.train_frequency):
                with self.clock.phase("replay"):
                    batch = self.replay.sample(self.importance)
                with self.clock.phase("learning"):
                    priorities = self.learner.update(batch)
                with self.clock.phase("replay"):
                    self.replay.update_priorities(batch.indices, priorities)
        if self.steps // s.target_update_interval > before // s.target_update_interval:
            self.learner.sync_target()
        self.reporter.advanced(self._status())

    def _store(self, transition: Transition) -> None:
        self.store.add(
            transition.env,
            transition.frame,
            transition.action,
            training_reward(self.settings, transition.reward),
            first=transition.first,
            terminal=transition.ends_return,
        )
        if transition.truncated:
            self.store.truncate(transition.env, transition.next_frame)
        if transition.finished:
            self._record_episode(transition, transition.finished)

    def _record_episode(self, transition: Transition, episode: Episode) -> None:
        self.episodes += 1
        steps = self.steps
        self.recent.append((episode.score, len(episode.actions)))
        self.tables["episodes"].add(
            {
                "steps": steps,
                "frames": steps * self.info.frames_per_step,
                "env": transition.env,
                "seed": episode.seed,
                "return": episode.score,
                "length": len(episode.actions),
                "terminated": int(transition.terminated),
            }
        )
        self._ended.append(episode)
        if self.support:
            returns = self.store.newest_returns(transition.env, self.settings.discount)
            if warning := self.support.check(returns):
                self.reporter.warned(warning)

    @property
    def epsilon(self) -> float:
        s = self.settings
        scheduled = linear(
            self.steps, s.epsilon_start, s.epsilon_end, s.learning_starts, s.epsilon_steps
        )
        return self.collector.epsilon(scheduled)

    @property
    def importance(self) -> float:
        """β, the exponent of the importance weights of prioritized replay."""
        return linear(self.steps, self.settings.importance_start, 1.0, 0, self.settings.importance_steps)

    # Between steps

    def _between_steps(self) -> None:
        """Log, evaluate and save if it is time to."""
        s = self.settings
        finished = self.steps >= s.steps
        if self._due("log", s.log_every) or (finished and self.done_at["log"] < self.steps):
            self._log()
        new_best = False
        if self._due("evaluation", s.evaluation_every) or (
            finished and self.done_at["evaluation"] < self.steps
        ):
            new_best = self._evaluate()
        if self._due("checkpoint", s.checkpoint_every) or new_best:
            self.save()

    def _due(self, what: str, every: int) -> bool:
        return self.steps // every > self.done_at[what] // every

    def _log(self) -> None:
        self._check_memory()
        seconds, steps = self.clock.training_seconds, self.steps
        report = self.learner.report()
        self.last_loss = report.loss
        scores, lengths = zip(*self.recent, strict=True) if self.recent else ((), ())
        metrics = {
            "steps": steps,
            "frames": steps * self.info.frames_per_step,
            "updates": self.learner.updates,
            "episodes": self.episodes,
            "epsilon": self.epsilon,
            "loss": report.loss,
            "value": report.value,
            "recent_return": float(np.mean(scores)) if scores else math.nan,
            "recent_length": float(np.mean(lengths)) if lengths else math.nan,
            "replay_steps": len(self.store),
            **report.metrics,
            **self.callbacks.take_recorded(),
        }
        self.tables["metrics"].add(metrics)
        passed = seconds - self._logged_seconds
        self.tables["timing"].add(
            {
                "steps": steps,
                "frames": metrics["frames"],
                "seconds": round(seconds, 3),
                "steps_per_second": round((steps - self.done_at["log"]) / max(passed, 1e-9), 3),
                "updates_per_second": round(report.updates / max(passed, 1e-9), 3),
            }
        )
        self._logged_seconds = seconds
        for sink in self.sinks:
            sink.add(steps, "training", metrics)
        self.callbacks.logged(metrics)
        self.done_at["log"] = steps

    def _check_memory(self) -> None:
        """Warn once if the replay buffer will not fit in memory, judging by the frames stored so far."""
        remaining = self.store.frames.remaining_bytes(self.settings.steps - self.steps)
        free = available_memory()
        if free is not None and remaining > free and not self._warned_of_memory:
            self._warned_of_memory = True
            self.reporter.warned(
                f"the replay buffer will take {human_bytes(remaining)} more and {human_bytes(free)} of "
                "memory is free: start a new run with a smaller buffer_size before memory runs out."
            )

    def _evaluate(self) -> bool:
        """Evaluate the agent, or the random policy at step 0; return whether it is the best so far."""
        s = self.settings
        self.reporter.evaluating()
        if not self._evaluation_envs:
            count = (
                PARALLEL_EPISODES
                if s.evaluation_steps
                else min(PARALLEL_EPISODES, s.evaluation_episodes)
            )
            self._evaluation_envs = [make(self.source, s) for _ in range(count)]
        policy = "agent" if self.steps else "random"
        with self.clock.phase("evaluation"):
            try:
                result = play_episodes(
                    self.agent,
                    self._evaluation_envs,
                    self.protocol if self.steps else self.protocol.changed(epsilon=1.0),
                    seed=seeds.derived_seed(s.seed, f"evaluation {self.steps}"),
                    stop=lambda: bool(self.signals.name),
                )
            except EvaluationStopped:
                return False  # done_at is unchanged, so that a resumed run evaluates at this step
        row = result.to_dict()
        context = {
            "steps": self.steps,
            "frames": self.steps * self.info.frames_per_step,
            "policy": policy,
            "protocol": result.protocol.label,
        }
        self.tables["evaluations"].add(row | context)
        shown = {key: row[key] for key in ("mean", "value", "min", "median", "max")}
        for sink in self.sinks:
            sink.add(self.steps, "evaluation", shown)
        self.done_at["evaluation"] = self.steps
        best = self.scores.update(self.steps, result)
        self.reporter.evaluated(self.steps, policy, result, best)
        self.callbacks.evaluation(result)
        if not s.max_episode_steps and result.lengths.max() >= LONGEST:
            self.reporter.warned(
                f"an evaluation episode was truncated after {LONGEST:,} steps: "
                "set max_episode_steps if episodes of this environment may not end."
            )
        return best

    def _finish(self) -> None:
        if self.done_at["checkpoint"] < self.steps or self._saved != self.done_at:
            self.save()
        for sink in self.sinks:
            sink.close()
        self.callbacks.end()
        self.reporter.finished(
            Summary(
                run=self.folder.path,
                steps=self.steps,
                total_steps=self.settings.steps,
                frames=self.steps * self.info.frames_per_step,
                risk=registry.label("risk", self.settings.played_risk()),
                mean_only=self.learner.online.head.mean_only,
                scores=self.scores,
                seconds=dict(self.clock.seconds),
                updates=self.learner.updates,
                stopped_by=self.signals.name or self.callbacks.stop_reason,
                trust=trust_flags(
                    modules_of(self.settings.names_of_code()) | modules_of_env(self.info.env)
                ),
            )
        )

    # Checkpoints

    def save(self, *, announce: bool = True) -> None:
        """Write a checkpoint from which the run can be resumed exactly; tell the callbacks of it."""
        with self.clock.phase("files"):
            self.learner.check_finite()
            self.done_at["checkpoint"] = self.steps
            segments = self.journal.append()
            online = self.learner.online.state_dict()
            files = {
                "agent": {k: v.cpu().numpy() for k, v in online.items()},
                "learner": {k: v.cpu().numpy() for k, v in self.learner.tensors().items()},
                "actor": {"observations": self.collector.in_progress()[1]},
            }
            if sampling := self.sampler.arrays():
                files["sampler"] = sampling
            for table in self.tables.values():
                table.sync()  # state.json refers to the size of these tables
            sync_folder(self.folder.path)
            name = self.checkpoints.save(self.steps, files, self._state(segments))
            self.folder.mark_saved()
            self._saved = dict(self.done_at)
            best = f"{self.scores.best_steps:09d}"
            if self.scores.best_steps == self.steps and self.steps:
                self.checkpoints.mark_best(name)
            resumable = {name, self._last}
            self._last = name
            undeleted = self.checkpoints.prune(resumable | {best})
            # Only the last two checkpoints keep their replay buffer; the best one is only for acting.
            self._segments[name] = {segment["file"] for segment in segments}
            self._segments = {k: v for k, v in self._segments.items() if k in resumable}
            undeleted |= self.journal.prune(set().union(*self._segments.values()))
        self._warn_of_old_files(undeleted)
        if announce:
            self.callbacks.checkpoint(self.folder.checkpoints / name)

    def _warn_of_old_files(self, undeleted: dict[Path, OSError]) -> None:
        """Warn once about each old file that could not be removed; the next save tries again."""
        for path in sorted(undeleted.keys() - self._undeleted):
            reason = (undeleted[path].strerror or str(undeleted[path])).lower()
            self.reporter.warned(
                f"{path} is no longer needed and could not be removed ({reason}): "
                "the run continues, and the next save tries again."
            )
        self._undeleted = set(undeleted)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore the state of a checkpoint.

        If the checkpoint is damaged, one error message says what is wrong. The tables are truncated
        last, so that nothing is lost if the checkpoint cannot be restored.
        """
        with self.checkpoints.explain_damage(checkpoint.path):
            check_state(checkpoint.state, self.settings.total_envs, self.info.actions.count)
            self._restore_learning(checkpoint)
            episodes = [Episode(**episode) for episode in checkpoint.state["playing"]]
            observations = checkpoint.arrays("actor")["observations"]
            if observations.shape != (self.settings.total_envs, *self.info.observation.input_shape):
                raise ValueError(f"its observations have the shape {observations.shape}")
        self._restore_episodes(episodes, observations)  # an error here comes from the environment
        self._restore_best()
        for sink in self.sinks:
            sink.purge(self.steps)
        for name, table in self.tables.items():
            if not table.truncate(checkpoint.state["tables"][name]):
                self.reporter.warned(
                    f"{table.path} has lost rows that it had when the checkpoint was written; "
                    "it continues after its last complete row."
                )

    def _restore_learning(self, checkpoint: Checkpoint) -> None:
        """Restore everything but the environments and the tables."""
        state = checkpoint.state
        self.steps, self.episodes = state["steps"], state["episodes"]
        self.recent.extend((score, length) for score, length in state["recent"])
        self.last_loss = math.nan if state["last_loss"] is None else state["last_loss"]
        self.done_at = dict(state["done_at"])
        self._saved = dict(self.done_at)
        self.scores = Scores(**state["scores"])
        self.clock.seconds |= state["seconds"]
        self._logged_seconds = state["logged_seconds"]
        self.learner.online.load_state_dict(
            {k: torch.from_numpy(v) for k, v in checkpoint.arrays("agent").items()}
        )
        self.learner.restore({k: torch.from_numpy(v) for k, v in checkpoint.arrays("learner").items()})
        self.learner.check_finite()
        self.journal.restore(state["replay"])
        self.sampler.restore(checkpoint.arrays("sampler") if checkpoint.has("sampler") else {})
        self._last = checkpoint.path.name
        self._segments = {self._last: {part["file"] for part in state["replay"]}}
        seeds.restore(self.generators, state["generators"])

    def _restore_best(self) -> None:
        name = f"{self.scores.best_steps:09d}"
        if name in self.checkpoints.names():
            self.checkpoints.mark_best(name)
        else:
            self.checkpoints.clear_best()
            self.scores.clear_best()

    def _restore_episodes(self, episodes: list[Episode], observations: Any) -> None:
        for _ in range(self.collector.restore(episodes, observations)):
            self.reporter.warned(
                f"{self.info.env} did not give the same observations and rewards when its episode was "
                "replayed from its seed: the episode is truncated, and the run continues but is not an "
                "exact continuation."
            )

    def _state(self, segments: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "episodes": self.episodes,
            "recent": list(self.recent),
            "last_loss": None if math.isnan(self.last_loss) else self.last_loss,
            "done_at": self.done_at,
            "scores": asdict(self.scores),
            "seconds": self.clock.seconds,
            "logged_seconds": self._logged_seconds,
            "tables": {name: table.rows for name, table in self.tables.items()},
            "generators": seeds.state_of(self.generators),
            "playing": [asdict(episode) for episode in self.collector.in_progress()[0]],
            "replay": segments,
        }

    # Reporting

    def _status(self) -> Status:
        scores = [score for score, _ in self.recent]
        return Status(
            steps=self.steps,
            total_steps=self.settings.steps,
            frames=self.steps * self.info.frames_per_step,
            epsilon=self.epsilon,
            loss=self.last_loss,
            recent_return=sum(scores) / len(scores) if scores else math.nan,
            best_value=self.scores.values.get("best", math.nan),
        )
