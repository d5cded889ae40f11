"""The training loop: act, store, learn, evaluate, save; and go on from any checkpoint exactly."""

import math
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from quantail import seeds
from quantail.acting.actor import Actor, Episode, Transition
from quantail.acting.agent import Agent
from quantail.acting.schedules import linear
from quantail.envs import EnvSource, make
from quantail.envs.adapt import Adapter
from quantail.envs.learned import as_learned
from quantail.evaluation.evaluate import LANES, EvaluationStopped, play_episodes
from quantail.evaluation.protocols import LONGEST, own_protocol
from quantail.files import sync_folder
from quantail.learning.learner import Learner
from quantail.networks import QuantileNetwork, build_network
from quantail.registry import modules_of, trust_flags
from quantail.replay import PrioritizedSampler, Replay, ReplayJournal, ReplayStore, UniformSampler
from quantail.replay.memory import available_memory, human_bytes
from quantail.training.attitude import Attitude
from quantail.training.checkpoints import Checkpoint, Checkpoints, check_state
from quantail.training.clock import Clock
from quantail.training.gathering import Gathering, Here
from quantail.training.reporter import Reporter, Status, Summary
from quantail.training.run_folder import RunFolder, RunInfo
from quantail.training.scores import Scores
from quantail.training.signals import StopSignals
from quantail.training.sinks import open_sinks
from quantail.training.support import SupportWatch
from quantail.training.tables import TABLES, Table

RECENT = 100  # episodes in the running mean


class Trainer:
    """One run, from its first step or from a checkpoint, to its end or until it is stopped."""

    def __init__(
        self,
        folder: RunFolder,
        info: RunInfo,
        source: EnvSource,
        attitude: Attitude,
        device: torch.device,
        reporter: Reporter,
    ) -> None:
        s = info.settings
        self.folder, self.info, self.settings, self.reporter = folder, info, s, reporter
        self.source, self.attitude, self.device = source, attitude, device
        self.protocol = own_protocol(s)
        self.generators = {name: seeds.generator(s.seed, name) for name in seeds.GENERATORS}
        network = build_network(
            s, info.observation, info.actions.count, seeds.derived_seed(s.seed, "weights")
        )
        self.learner = Learner(
            network,
            s,
            attitude.target,
            taus=self.generators["learning-taus"],
            noise=self.generators["learning-noise"],
            device=device,
        )
        self.store = ReplayStore(info.observation, s.lanes, s.replay_capacity)
        drawing = self.generators["replay"]
        self.sampler = (
            PrioritizedSampler(self.store, s.priority_exponent, drawing)
            if s.replay == "prioritized"
            else UniformSampler(self.store, drawing)
        )
        self.replay = Replay(self.store, self.sampler, s.batch_size, s.n_step, s.discount)
        self.journal = ReplayJournal(folder.replay, self.store)
        self.clock = Clock()
        self.gathering = self._gathering(network)
        self.agent = Agent(network, s, info.observation, info.actions, source, attitude.evaluation)
        self.checkpoints = Checkpoints(folder.checkpoints)
        self.tables = {name: Table(folder.table(name), columns) for name, columns in TABLES.items()}
        self.sinks = open_sinks(s, folder.path)
        self.support = SupportWatch(s.value_min, s.value_max) if s.head == "categorical" else None
        self._lanes: list[Adapter] = []
        self.signals = StopSignals()
        self._logged_seconds = 0.0
        self._warned_of_memory = False
        self._saved: dict[str, int] = {}  # done_at of that checkpoint
        self._last = ""  # the checkpoint saved or restored last
        self._segments: dict[str, set[str]] = {}  # the replay's files of each resumable checkpoint
        self._stayed: set[Path] = set()  # old files that the last save could not remove
        # Everything below is part of a checkpoint.
        self.steps = 0
        self.episodes = 0
        self.recent: deque[tuple[float, int]] = deque(maxlen=RECENT)
        self.last_loss = math.nan
        self.done_at = {"log": 0, "evaluation": -1, "checkpoint": 0}
        self.scores = Scores()

    def _gathering(self, network: QuantileNetwork) -> Gathering:
        s = self.settings
        if s.engine == "ray":
            from quantail.training.elsewhere import Elsewhere

            return Elsewhere(
                self.info,
                self.source,
                self.attitude.behaviour,
                self.learner,
                self.clock,
                self.store.truncate,
                self.reporter.warned,
            )
        actor = Actor(
            [make(self.source, s) for _ in range(s.envs)],
            network,
            self.attitude.behaviour,
            s.policy_samples,
            self.device,
            seeds=self.generators["episodes"],
            exploration=self.generators["exploration"],
            taus=self.generators["acting-taus"],
            noise=self.generators["acting-noise"],
            scheme=s.tau,
        )
        return Here(actor, self.clock, self.store.truncate)

    # The loop

    def run(self) -> Agent:
        """Train until the settings' steps are done; the agent as it is then.

        Asked to stop, the run saves, says how to resume, and then ends as the signal would have it.
        """
        self.gathering.start()
        self.reporter.started(self._status())
        try:
            with self.signals:
                while True:
                    self._chores()
                    if self.signals.name or self.steps >= self.settings.steps:
                        break
                    self.step()
                self._finish()
        finally:
            self.close()
        self.signals.end_as_asked()
        return self.agent

    def close(self) -> None:
        """Let go of the terminal and the environments."""
        self.reporter.close()
        self.gathering.close()
        for env in self._lanes:
            env.close()

    def step(self) -> None:
        """The next decisions, and the updates that fall due."""
        s, before = self.settings, self.steps
        if s.risk_steps:
            now = self.attitude.at(linear(before, 0.0, 1.0, s.learn_start, s.risk_steps))
            self.gathering.turn(now.behaviour)
            self.learner.risk = now.target
        transitions = self.gathering.gather(self.epsilon)
        with self.clock.phase("replay"):
            for transition in transitions:
                self.steps += 1
                self._remember(transition)
        if self.steps >= s.learn_start:
            since = max(before, s.learn_start - 1)
            for _ in range(self.steps // s.update_every - since // s.update_every):
                with self.clock.phase("replay"):
                    batch = self.replay.sample(self.importance)
                with self.clock.phase("learning"):
                    priorities = self.learner.update(batch)
                with self.clock.phase("replay"):
                    self.replay.learned(priorities)
        if self.steps // s.target_every > before // s.target_every:
            self.learner.sync_target()
        self.reporter.advanced(self._status())

    def _remember(self, transition: Transition) -> None:
        reward, ends = as_learned(
            self.settings,
            transition.reward,
            terminated=transition.terminated,
            life_lost=transition.life_lost,
        )
        self.store.add(
            transition.env,
            transition.frame,
            transition.action,
            reward,
            first=transition.first,
            terminal=ends,
        )
        if transition.truncated:
            self.store.truncate(transition.env, transition.next_frame)
        if transition.finished:
            self._count_episode(transition, transition.finished)

    def _count_episode(self, transition: Transition, episode: Episode) -> None:
        self.episodes += 1
        steps = self.steps
        self.recent.append((episode.score, len(episode.actions)))
        self.tables["episodes"].add(
            {
                "steps": steps,
                "frames": steps * self.settings.action_repeat,
                "env": transition.env,
                "seed": episode.seed,
                "return": episode.score,
                "length": len(episode.actions),
                "terminated": int(transition.terminated),
            }
        )
        if self.support:
            returns = self.store.newest_returns(transition.env, self.settings.discount)
            if warning := self.support.see(returns):
                self.reporter.warned(warning)

    @property
    def epsilon(self) -> float:
        s = self.settings
        scheduled = linear(self.steps, s.epsilon_start, s.epsilon_end, s.learn_start, s.epsilon_steps)
        return self.gathering.epsilon(scheduled)

    @property
    def importance(self) -> float:
        """β of prioritized replay."""
        return linear(self.steps, self.settings.importance_start, 1.0, 0, self.settings.importance_steps)

    # What happens between steps

    def _chores(self) -> None:
        s = self.settings
        over = self.steps >= s.steps
        if self._due("log", s.log_every) or (over and self.done_at["log"] < self.steps):
            self._log()
        new_best = False
        if self._due("evaluation", s.evaluation_every) or (
            over and self.done_at["evaluation"] < self.steps
        ):
            new_best = self._evaluate()
        if self._due("checkpoint", s.checkpoint_every) or new_best:
            self.save()

    def _due(self, what: str, every: int) -> bool:
        return self.steps // every > self.done_at[what] // every

    def _log(self) -> None:
        self._watch_memory()
        seconds, steps = self.clock.training_seconds, self.steps
        report = self.learner.report()
        self.last_loss = report.loss
        scores, lengths = zip(*self.recent, strict=True) if self.recent else ((), ())
        metrics = {
            "steps": steps,
            "frames": steps * self.settings.action_repeat,
            "updates": self.learner.updates,
            "episodes": self.episodes,
            "epsilon": self.epsilon,
            "loss": report.loss,
            "value": report.value,
            "recent_return": float(np.mean(scores)) if scores else math.nan,
            "recent_length": float(np.mean(lengths)) if lengths else math.nan,
            "replay_steps": len(self.store),
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
        self.done_at["log"] = steps

    def _watch_memory(self) -> None:
        """Warn once where the replay will not fit: how far frames shrink is known only by now."""
        missing = self.store.frames.bytes_missing(self.settings.steps - self.steps)
        free = available_memory()
        if free is not None and missing > free and not self._warned_of_memory:
            self._warned_of_memory = True
            self.reporter.warned(
                f"the replay will take {human_bytes(missing)} more and {human_bytes(free)} of memory "
                "is free: begin anew with a smaller replay_capacity before it is used up."
            )

    def _evaluate(self) -> bool:
        """Evaluate, at step 0 the random policy instead; whether the score is the best so far."""
        s = self.settings
        self.reporter.evaluating()
        if not self._lanes:
            count = LANES if s.evaluation_steps else min(LANES, s.evaluation_episodes)
            self._lanes = [make(self.source, s) for _ in range(count)]
        policy = "agent" if self.steps else "random"
        with self.clock.phase("evaluation"):
            try:
                result = play_episodes(
                    self.agent,
                    self._lanes,
                    self.protocol if self.steps else self.protocol.changed(epsilon=1.0),
                    seed=seeds.derived_seed(s.seed, f"evaluation {self.steps}"),
                    stop=lambda: bool(self.signals.name),
                )
            except EvaluationStopped:
                return False  # done_at is as before, so that a resumed run evaluates here
        row = result.to_dict()
        told = {
            "steps": self.steps,
            "frames": self.steps * s.action_repeat,
            "policy": policy,
            "protocol": result.protocol.label,
        }
        self.tables["evaluations"].add(row | told)
        shown = {key: row[key] for key in ("mean", "value", "min", "median", "max")}
        for sink in self.sinks:
            sink.add(self.steps, "evaluation", shown)
        self.done_at["evaluation"] = self.steps
        best = self.scores.take(self.steps, result)
        self.reporter.evaluated(self.steps, policy, result, best)
        if not s.max_episode_steps and result.lengths.max() >= LONGEST:
            self.reporter.warned(
                f"an episode of the evaluation was cut after {LONGEST:,} steps: "
                "set max_episode_steps if episodes of this environment need not end."
            )
        return best

    def _finish(self) -> None:
        if self.done_at["checkpoint"] < self.steps or self._saved != self.done_at:
            self.save()
        for sink in self.sinks:
            sink.close()
        self.reporter.finished(
            Summary(
                run=self.folder.path,
                steps=self.steps,
                total_steps=self.settings.steps,
                frames=self.steps * self.settings.action_repeat,
                risk=self.settings.played_risk(),
                head=self.settings.head,
                scores=self.scores,
                seconds=dict(self.clock.seconds),
                updates=self.learner.updates,
                stopped_by=self.signals.name,
                trust=trust_flags(modules_of([self.info.env, *self.settings.risks()])),
            )
        )

    # Checkpoints

    def save(self) -> None:
        """Write a checkpoint from which the run goes on exactly."""
        with self.clock.phase("files"):
            self.learner.check_finite()
            self.done_at["checkpoint"] = self.steps
            segments = self.journal.append()
            online = self.learner.online.state_dict()
            files = {
                "agent": {k: v.cpu().numpy() for k, v in online.items()},
                "learner": {k: v.cpu().numpy() for k, v in self.learner.tensors().items()},
                "actor": {"observations": self.gathering.under_way()[1]},
            }
            if sampling := self.sampler.arrays():
                files["sampler"] = sampling
            for table in self.tables.values():
                table.sync()  # the state counts on these rows
            sync_folder(self.folder.path)
            name = self.checkpoints.save(self.steps, files, self._state(segments))
            self._saved = dict(self.done_at)
            best = f"{self.scores.best_steps:09d}"
            if self.scores.best_steps == self.steps and self.steps:
                self.checkpoints.mark_best(name)
            resumable = {name, self._last}
            self._last = name
            stayed = self.checkpoints.prune(resumable | {best})
            # The best one serves to act; only the last two keep their replay.
            self._segments[name] = {segment["file"] for segment in segments}
            self._segments = {k: v for k, v in self._segments.items() if k in resumable}
            stayed |= self.journal.prune(set().union(*self._segments.values()))
        self._warn_of_old_files(stayed)

    def _warn_of_old_files(self, stayed: dict[Path, OSError]) -> None:
        """Say once of each old file that it could not be removed; the next save tries again."""
        for path in sorted(stayed.keys() - self._stayed):
            reason = (stayed[path].strerror or str(stayed[path])).lower()
            self.reporter.warned(
                f"{path} is no longer needed and could not be removed ({reason}): "
                "the run goes on, and the next save tries again."
            )
        self._stayed = set(stayed)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Put everything back as it was when the checkpoint was written.

        Whatever is wrong with the checkpoint is told in one sentence. The tables are cut last, so that a
        checkpoint which cannot be restored costs nothing.
        """
        with self.checkpoints.blamed(checkpoint.path):
            check_state(checkpoint.state, self.settings.lanes, self.info.actions.count)
            self._restore_learning(checkpoint)
            episodes = [Episode(**episode) for episode in checkpoint.state["playing"]]
            observations = checkpoint.arrays("actor")["observations"]
            if observations.shape != (self.settings.lanes, *self.info.observation.input_shape):
                raise ValueError(f"its observations have the shape {observations.shape}")
        self._restore_episodes(episodes, observations)  # what fails here is the environment
        self._restore_best()
        for sink in self.sinks:
            sink.purge(self.steps)
        for name, table in self.tables.items():
            if not table.cut(checkpoint.state["tables"][name]):
                self.reporter.warned(
                    f"{table.path} has lost rows that were there when the checkpoint was written; "
                    "it goes on after its last whole row."
                )

    def _restore_learning(self, checkpoint: Checkpoint) -> None:
        """Put back all but the environments and the tables."""
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
        if self.settings.replay == "prioritized":
            self.sampler.restore(checkpoint.arrays("sampler"))
        self._last = checkpoint.path.name
        self._segments = {self._last: {part["file"] for part in state["replay"]}}
        seeds.restore(self.generators, state["generators"])

    def _restore_best(self) -> None:
        name = f"{self.scores.best_steps:09d}"
        if name in self.checkpoints.names():
            self.checkpoints.mark_best(name)
        else:
            self.checkpoints.forget_best()
            self.scores.forget_best()

    def _restore_episodes(self, episodes: list[Episode], observations: Any) -> None:
        for _ in range(self.gathering.restore(episodes, observations)):
            self.reporter.warned(
                f"{self.info.env} did not give the same observations and rewards when its episode was "
                "played again from its seed: the episode is cut there, and the run goes on but is not "
                "exact."
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
            "tables": {name: table.size() for name, table in self.tables.items()},
            "generators": seeds.state_of(self.generators),
            "playing": [asdict(episode) for episode in self.gathering.under_way()[0]],
            "replay": segments,
        }

    # What is shown

    def _status(self) -> Status:
        scores = [score for score, _ in self.recent]
        return Status(
            steps=self.steps,
            total_steps=self.settings.steps,
            frames=self.steps * self.settings.action_repeat,
            epsilon=self.epsilon,
            loss=self.last_loss,
            recent_return=sum(scores) / len(scores) if scores else math.nan,
            best_value=self.scores.values.get("best", math.nan),
        )
