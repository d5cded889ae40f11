"""Benchmark the cycle of a run: the steps between two updates, and one update."""

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from quantail.agents.agent import Agent
from quantail.bench import act, dense, learner
from quantail.bench.measure import WARM_UP, Row, race
from quantail.config import Config
from quantail.envs import EnvSource
from quantail.recipes import configure
from quantail.training.train import load, prepare
from quantail.training.trainer import Trainer
from quantail.trust import Trust

ENVS = {"small": "CartPole-v1", "minatar": "MinAtar/Breakout-v1", "atari-paper": "ALE/Breakout-v5"}
START = 2_000  # steps before the first update


@dataclass(frozen=True)
class Job:
    """The run of a row; `trained` has the weights that it begins with, if they are not fresh."""

    setting: str
    env: EnvSource
    config: Config
    trained: Agent | None = None


def fresh_jobs(presets: Sequence[str] = (), agents: Sequence[str] = ()) -> list[Job]:
    """Return the jobs of these presets and agents, each with fresh weights."""
    return [
        Job(f"{agent} {preset}", ENVS[preset], configure(ENVS[preset], agent=agent, preset=preset))
        for preset in presets or ENVS
        for agent in agents or ("iqn",)
    ]


def trained_job(run: str | Path, trust: Trust = ()) -> Job:
    """Return the job of a run, with its settings and the weights of its last checkpoint.

    What a network costs depends on its training, because features that are zero are skipped.
    """
    agent = load(run, "last", device="cpu", trust=trust)
    named = agent.config.run
    setting = f"{named.agent} {named.preset} after {agent.checkpoint:,} steps"
    # The agent's own play fills the replay buffer; with fresh weights, random play does.
    config = agent.config.replace(epsilon_start=agent.config.exploration.epsilon_end)
    return Job(setting, agent.env, config, agent)


def rows(seconds: float, jobs: Sequence[Job] | None = None) -> Iterator[Row]:
    """Yield a row for each job, by default for IQN on each preset, on one thread."""
    for job in fresh_jobs() if jobs is None else jobs:
        with tempfile.TemporaryDirectory() as folder:
            trainer = _prepare(job, Path(folder) / "run")
            with closing(trainer), trainer.process_settings():
                yield _row(job.setting, trainer, seconds)


def _prepare(job: Job, folder: Path) -> Trainer:
    """Return the trainer of a new run that is about to learn and then explores little."""
    changes = {"learning_starts": START, "epsilon_steps": 1, "threads": 1, "device": "cpu"}
    config = job.config.replace(
        **changes,
        steps=max(job.config.run.steps, 2 * START),
        engine="local",
        tensorboard=False,
        wandb="",
    )
    trainer = prepare(job.env, config, out=folder)
    if job.trained:
        trainer.learner.online.load_state_dict(job.trained.network.state_dict())
        trainer.learner.sync_target()
    return trainer


def _row(setting: str, trainer: Trainer, seconds: float) -> Row:
    trainer.start()
    while trainer.steps < START:
        trainer.step()
    every, envs = trainer.config.learner.train_frequency, trainer.config.run.num_envs
    steps = math.lcm(every, envs)
    calls, updates = steps // envs, steps // every

    def cycle() -> None:
        for _ in range(calls):
            trainer.step()

    for _ in range(WARM_UP):
        cycle()
    bound = bound_of(trainer, calls, updates)
    parts = Parts(trainer)
    row = race("cycle", setting, parts.timed("cycle", cycle), bound, seconds, scale=updates)
    per_second = 1000 * every / row.median_ms
    more = {"steps_per_second": round(per_second, 1)}
    if trainer.info.frames_per_step > 1:
        more["frames_per_second"] = round(per_second * trainer.info.frames_per_step, 1)
    return replace(row, more=more | parts.shares())


def bound_of(trainer: Trainer, calls: int, updates: int) -> dense.Work:
    """Return all products of a cycle's decisions and updates, with nothing between them."""
    batch = trainer.replay.sample()
    observations = batch.observations[torch.arange(trainer.config.run.num_envs) % len(batch.actions)]
    decide = act.bound_of(trainer.learner.online, observations)
    update = learner.bound_of(trainer.learner, batch)

    def products() -> None:
        for _ in range(calls):
            decide()
        for _ in range(updates):
            update()

    return products


class Parts:
    """Measures which share of the cycles each part of the work takes, from now on."""

    def __init__(self, trainer: Trainer) -> None:
        self._clock, self._before = trainer.clock, dict(trainer.clock.seconds)
        self._seconds = {"cycle": 0.0, "sample": 0.0}
        # The clock of a run does not tell sampling and storing apart: both are its phase "replay".
        for name in ("sample", "update_priorities"):
            setattr(trainer.replay, name, self.timed("sample", getattr(trainer.replay, name)))

    def timed(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return the same function, which also counts its time for a part."""

        def call(*arguments: Any) -> Any:
            begin = time.perf_counter()
            result = work(*arguments)
            self._seconds[part] += time.perf_counter() - begin
            return result

        return call

    def shares(self) -> dict[str, float]:
        """Return the share of each part; the rest is the loop itself.

        `store` counts the episodes too, and `sample` updates the priorities.
        """
        spent = {name: now - self._before[name] for name, now in self._clock.seconds.items()}
        cycle, sample = self._seconds["cycle"], self._seconds["sample"]
        seconds = {
            "act": spent["acting"],
            "play": spent["environment"],
            "store": spent["replay"] - sample,
            "sample": sample,
            "update": spent["learning"],
        }
        return {name: round(part / cycle, 3) for name, part in seconds.items()}
