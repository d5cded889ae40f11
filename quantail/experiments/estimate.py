"""What a study will take, before it starts: frames, hours, memory."""

import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch

from quantail.errors import QuantailError
from quantail.experiments.folder import StudyFolder
from quantail.experiments.study import Job
from quantail.observations import ObservationSpec
from quantail.replay import PrioritizedSampler, ReplayStore
from quantail.replay.memory import human_bytes
from quantail.training.progress import counted
from quantail.training.train import pick_device, prepare

MEASURING = 8.0  # seconds at most for all combinations together
EACH = 0.5  # seconds at most for one
START = 64  # steps before a measured run learns
LONG = 3600.0  # seconds from which a study is worth a question


@dataclass(frozen=True)
class Cost:
    """What one run takes."""

    step: float  # seconds
    evaluation_step: float  # seconds, acting alone
    bytes: int  # of the replay
    measured: bool  # now, or told by runs that are there
    instead_of: str = ""  # the device that is not here, where it was measured on the CPU


@dataclass(frozen=True)
class Estimate:
    """What is left of a study."""

    runs: int
    frames: int
    seconds: float
    bytes: int
    source: str
    open_ended: bool  # whether evaluations of whole episodes come on top

    @property
    def long(self) -> bool:
        return self.seconds > LONG

    def lines(self) -> dict[str, str]:
        """For people."""
        more = ", evaluations on top" if self.open_ended else ""
        return {
            "left": f"{counted(self.runs, 'run')}, {self.frames:,} frames",
            "time": f"about {in_words(self.seconds)}{more} ({self.source})",
            "memory": f"about {human_bytes(self.bytes)} at once",
        }


def estimate(folder: StudyFolder, jobs: Sequence[Job], at_once: int) -> Estimate:
    """Costs of each combination, from runs of the study where they tell, else from a short one here."""
    kinds: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        kinds.setdefault((job.config.label, _family(job.env)), []).append(job)
    each = min(EACH, MEASURING / len(kinds))
    told = {kind: _told(folder, kind) for kind in kinds}
    costs = {kind: told[kind] or _measured(members[0], each) for kind, members in kinds.items()}
    seconds, frames, most = 0.0, 0, 0
    for kind, members in kinds.items():
        cost = costs[kind]
        most = max(most, cost.bytes)
        for job in members:
            s = job.settings
            left = max(s.steps - folder.state(job.name).steps, 0)
            seconds += left * cost.step
            seconds += left / s.evaluation_every * s.evaluation_steps * cost.evaluation_step
            frames += left * s.action_repeat
    measured = sum(cost.measured for cost in costs.values())
    source = "from a short measurement here"
    if measured < len(costs):
        source = "from the runs that are there" + (" and a short measurement here" * bool(measured))
    if absent := sorted({cost.instead_of for cost in costs.values()} - {""}):
        source += f", on the CPU, as {' and '.join(absent)} is not on this machine"
    unit = 1 if sys.platform == "darwin" else 1024
    process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    runs = min(at_once, len(jobs))
    return Estimate(
        runs=len(jobs),
        frames=frames,
        seconds=seconds / max(runs, 1),
        bytes=runs * (most + process),
        source=source,
        open_ended=any(not job.settings.evaluation_steps for job in jobs),
    )


def in_words(seconds: float) -> str:
    """12 minutes, 3.5 hours, 40 days."""
    for unit, size in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)):
        if seconds >= 1.5 * size:
            value = seconds / size
            return f"{value:,.0f} {unit}s" if value >= 10 else f"{value:.1f} {unit}s"
    return counted(max(1, round(seconds)), "second")


def _family(env: str) -> str:
    """Environments that cost about the same: ALE, MinAtar, or the one itself."""
    return env.rpartition("/")[0] or env


def _told(folder: StudyFolder, kind: tuple[str, str]) -> Cost | None:
    """What a run of this combination told in timing.csv, if it learned for a while."""
    for name, job in folder.jobs.items():
        if (job.config.label, _family(job.env)) != kind:
            continue
        table = folder.run(name).table("timing")
        rows = table.read_text(encoding="utf-8").splitlines()[1:] if table.exists() else []
        cells = rows[-1].split(",") if rows else []
        if len(cells) == 5 and int(cells[0]) >= 2 * job.settings.learn_start:
            info = folder.run(name).read()
            seconds = float(cells[2]) / int(cells[0])
            return Cost(seconds, seconds / 2, _bytes(job, info.observation), measured=False)
    return None


def _measured(job: Job, seconds: float) -> Cost:
    """Some steps of this run, in the state in which it spends its time: learning."""
    threads = torch.get_num_threads()
    start = max(START, 2 * job.settings.n_step * job.settings.envs)
    few = {"learn_start": start, "replay_capacity": 64 * start, "steps": 1_000_000_000}
    absent = "" if _is_here(job.settings.device) else job.settings.device
    device = {"device": "cpu"} if absent else {}
    changes = {**job.changes, **few, **device, "tensorboard": False, "wandb": ""}
    with tempfile.TemporaryDirectory() as place:
        trainer = prepare(job.env, preset=job.preset, out=Path(place) / "run", **changes)
        with closing(trainer):
            trainer.gathering.start()
            while trainer.steps < trainer.settings.learn_start + 2 * trainer.settings.update_every:
                trainer.step()
            before, begun, first = dict(trainer.clock.seconds), time.perf_counter(), trainer.steps
            least = 2 * trainer.settings.update_every
            while time.perf_counter() - begun < seconds or trainer.steps - first < least:
                trainer.step()
            steps, spent = trainer.steps - first, time.perf_counter() - begun
            acting = sum(trainer.clock.seconds[one] - before[one] for one in ("acting", "environment"))
            size = _bytes(job, trainer.info.observation)
    torch.set_num_threads(threads)
    return Cost(spent / steps, acting / steps, size, measured=True, instead_of=absent)


def _is_here(device: str) -> bool:
    """Whether this machine has it: the head of a cluster may have no GPU."""
    try:
        pick_device(device)
    except QuantailError:
        return False
    return True


def _bytes(job: Job, observation: ObservationSpec) -> int:
    capacity = job.settings.replay_capacity
    needed = ReplayStore.bytes_needed(observation, capacity)
    if job.settings.replay == "prioritized":
        needed += PrioritizedSampler.bytes_needed(capacity)
    return needed
