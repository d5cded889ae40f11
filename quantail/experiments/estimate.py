"""Estimate the frames, time and memory of a study before it starts."""

import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil

from quantail.errors import QuantailError
from quantail.experiments.folder import StudyFolder
from quantail.experiments.study import Job
from quantail.recipes import configure
from quantail.replay import ReplayStore
from quantail.replay.memory import human_bytes
from quantail.runs.tables import read_table
from quantail.spaces import ObservationSpec
from quantail.text import counted
from quantail.training.train import pick_device, prepare

MEASURING = 8.0  # maximum seconds for measuring all combinations
EACH = 0.5  # maximum seconds for measuring one combination
START = 64  # learning_starts of a measured run
LONG = 3600.0  # seconds from which the user is asked to confirm


@dataclass(frozen=True)
class Cost:
    """The cost of one run."""

    step: float  # seconds
    evaluation_step: float  # seconds, without learning
    bytes: int  # of the replay
    measured: bool  # measured now, rather than taken from existing runs
    instead_of: str = ""  # the missing device, if the CPU was measured instead


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of the remaining runs of a study."""

    runs: int
    frames: int
    seconds: float
    bytes: int
    source: str
    open_ended: bool  # whether the time of evaluations is unknown, because they count episodes

    @property
    def long(self) -> bool:
        return self.seconds > LONG

    def lines(self) -> dict[str, str]:
        """Return the estimate as text, by topic."""
        more = " plus evaluations" if self.open_ended else ""
        return {
            "left": f"{counted(self.runs, 'run')}, {self.frames:,} frames",
            "time": f"about {in_words(self.seconds)}{more} ({self.source})",
            "memory": f"about {human_bytes(self.bytes)} in total",
        }


def estimate(folder: StudyFolder, jobs: Sequence[Job], at_once: int) -> Estimate:
    """Estimate the cost of jobs, from existing runs of the study or from a short measurement."""
    kinds: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        kinds.setdefault((job.combination.label, _family(job.env)), []).append(job)
    each = min(EACH, MEASURING / len(kinds))
    known = {kind: _cost_from_runs(folder, kind) for kind in kinds}
    costs = {kind: known[kind] or _measure_cost(members[0], each) for kind, members in kinds.items()}
    seconds, frames, most = 0.0, 0, 0
    for kind, members in kinds.items():
        cost = costs[kind]
        most = max(most, cost.bytes)
        for job in members:
            s = job.config
            left = max(s.run.steps - folder.state(job.name).steps, 0)
            seconds += left * cost.step
            seconds += (
                left
                / s.evaluation.evaluation_every
                * s.evaluation.evaluation_steps
                * cost.evaluation_step
            )
            frames += left * job.frames_per_step
    measured = sum(cost.measured for cost in costs.values())
    source = "from a short measurement"
    if measured < len(costs):
        source = "from existing runs" + (" and a short measurement" * bool(measured))
    if absent := sorted({cost.instead_of for cost in costs.values()} - {""}):
        source += f" on the CPU, because this machine has no {' and '.join(absent)}"
    runs = min(at_once, len(jobs))
    return Estimate(
        runs=len(jobs),
        frames=frames,
        seconds=seconds / max(runs, 1),
        bytes=runs * (most + psutil.Process().memory_info().rss),
        source=source,
        open_ended=any(not job.config.evaluation.evaluation_steps for job in jobs),
    )


def in_words(seconds: float) -> str:
    """Return a duration in words, such as 12 minutes, 3.5 hours or 40 days."""
    for unit, size in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)):
        if seconds >= 1.5 * size:
            value = seconds / size
            return f"{value:,.0f} {unit}s" if value >= 10 else f"{value:.1f} {unit}s"
    return counted(max(1, round(seconds)), "second")


def _family(env: str) -> str:
    """Return the family of environments with similar cost: ALE, MinAtar, or the id itself."""
    return env.rpartition("/")[0] or env


def _cost_from_runs(folder: StudyFolder, kind: tuple[str, str]) -> Cost | None:
    """Return the cost from timing.csv of a run of this combination, if it has learned for a while."""
    for name, job in folder.jobs.items():
        if (job.combination.label, _family(job.env)) != kind:
            continue
        timing = read_table(folder.run(name).table("timing"))
        steps = int(timing["steps"].max(initial=0))
        if steps >= 2 * job.config.learner.learning_starts:
            info = folder.run(name).read()
            seconds = float(timing["seconds"][-1]) / steps
            return Cost(seconds, seconds / 2, _bytes(job, info.observation), measured=False)
    return None


def _measure_cost(job: Job, seconds: float) -> Cost:
    """Measure the cost of a run by training it for some steps after `learning_starts`."""
    start = max(START, 2 * job.config.learner.n_step * job.config.run.num_envs)
    short = {"learning_starts": start, "buffer_size": 64 * start, "steps": 1_000_000_000}
    absent = "" if _is_available(job.config.run.device) else job.config.run.device
    device = {"device": "cpu"} if absent else {}
    changes = {**job.changes, **short, **device, "tensorboard": False, "wandb": ""}
    with tempfile.TemporaryDirectory() as folder:
        config = configure(job.env, preset=job.preset, **changes)
        trainer = prepare(job.env, config, out=Path(folder) / "run")
        with closing(trainer), trainer.process_settings():
            trainer.start()
            least = 2 * config.learner.train_frequency
            while trainer.steps < config.learner.learning_starts + least:
                trainer.step()
            before, start_time, first = dict(trainer.clock.seconds), time.perf_counter(), trainer.steps
            while time.perf_counter() - start_time < seconds or trainer.steps - first < least:
                trainer.step()
            steps, spent = trainer.steps - first, time.perf_counter() - start_time
            acting = sum(trainer.clock.seconds[one] - before[one] for one in ("acting", "environment"))
            size = _bytes(job, trainer.info.observation)
    return Cost(spent / steps, acting / steps, size, measured=True, instead_of=absent)


def _is_available(device: str) -> bool:
    """Return whether this machine has the device; the head node of a cluster may have no GPU."""
    try:
        pick_device(device)
    except QuantailError:
        return False
    return True


def _bytes(job: Job, observation: ObservationSpec) -> int:
    capacity = job.config.replay.buffer_size
    sampling: int = job.config.replay.sampler.find().bytes_needed(capacity)
    return ReplayStore.bytes_needed(observation, capacity) + sampling
