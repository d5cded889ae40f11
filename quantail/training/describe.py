"""Describe a run before it starts, and warn about settings that are probably not intended."""

import os

import torch

from quantail.config.flat import DEFAULT_PARTS
from quantail.networks import NUMBA
from quantail.recipes import parts_of
from quantail.registry import label
from quantail.replay import ReplayStore
from quantail.replay.frames import is_compressed
from quantail.replay.memory import human_bytes
from quantail.runs.folder import RunFolder, RunInfo
from quantail.text import counted


def replay_bytes(info: RunInfo) -> int:
    """Return the memory that the replay buffer needs, with its sampler."""
    capacity = info.config.replay.buffer_size
    sampling: int = info.config.replay.sampler.find().bytes_needed(capacity)
    return ReplayStore.bytes_needed(info.observation, capacity, info.num_masked) + sampling


def description(folder: RunFolder, info: RunInfo, device: torch.device) -> dict[str, str]:
    """Return the lines that describe a run before it starts."""
    s = info.config
    distribution = s.head.find().describe(s.head.config)
    values = s.to_dict()
    parts = [one for one in ("double", "dueling", "noisy") if values.get(one)]
    parts += [s.learner.target.label] if s.learner.target.name != DEFAULT_PARTS["target"] else []
    steps = [f"{s.learner.n_step}-step returns"] if s.learner.n_step > 1 else []
    decay = f" ({s.learner.schedule.label})" if s.learner.schedule.find().varies else ""
    every = s.learner.train_frequency
    learning = (
        f"{', '.join([distribution, *parts, *steps])}, batches of {s.learner.batch_size}, "
        f"learning rate {s.learner.learning_rate:g}{decay}, one update every "
        f"{f'{every} steps' if every > 1 else 'step'} after {counted(s.learner.learning_starts, 'step')}"
    )
    several = f", {s.run.total_envs} at a time" if s.run.total_envs > 1 else ""
    several += f" in {counted(s.run.workers, 'worker')}" if s.run.workers else ""
    frames = f" ({s.run.steps * info.frames_per_step:,} frames)" if info.frames_per_step > 1 else ""
    agent = f"{s.run.agent} {', '.join(parts_of(s))}".strip()
    memory = f"{human_bytes(replay_bytes(info))} of memory"
    if any(map(is_compressed, info.observation.leaves.values())):
        memory = f"about {memory}, compressed"
    return {
        "environment": f"{info.env}{several}: observations {info.observation.describe()}, "
        f"{counted(info.actions.count, 'action')}{' with masks' if info.actions.masked else ''}",
        "agent": f"{agent}, preset {info.preset}, risk measure {s.risk.describe()}",
        "learning": learning,
        "replay": f"the last {s.replay.buffer_size:,} steps, {s.replay.sampler.label} sampling, "
        f"{memory}",
        "budget": f"{counted(s.run.steps, 'step')}{frames}, seed {s.run.seed}",
        "device": f"{device.type} with {counted(info.threads, 'thread')}"
        f"{' and compiled kernels' if info.kernels == NUMBA else ''}",
        **(
            {"engine": f"ray, {s.run.actors} actors; not reproducible bit for bit"}
            if s.run.engine == "ray"
            else {}
        ),
        "folder": str(folder.path),
    }


def warnings_about(info: RunInfo) -> list[str]:
    """Return warnings about the settings of a run on this machine, a sentence each."""
    s, found = info.config, []
    busy = busy_cores()
    if info.threads > 1 and busy >= 1:
        found.append(
            f"about {busy:.0f} of the machine's {os.cpu_count()} cores were busy in the last minute: "
            "several threads are slow on busy cores, --threads 1 (threads=1 in Python) may be faster."
        )
    if (
        not s.network.noisy
        and s.run.engine == "local"
        and s.exploration.epsilon_start == s.exploration.epsilon_end == 0
    ):
        found.append("noisy is no and epsilon_start and epsilon_end are 0: the agent never explores.")
    risk, target = s.risk.describe(), s.risk.target_risk or s.risk.risk
    if risk == "neutral":
        return found
    if s.head.find().mean_only:
        found.append(
            f"{s.run.agent} learns only the mean return, so a risk measure ({risk}) does not change its "
            "actions, only which checkpoint is considered best. Use an agent such as iqn instead."
        )
    elif s.learner.n_step > 1 and {s.risk.behaviour_risk or s.risk.risk, target} != {"neutral"}:
        found.append(
            f"with n_step {s.learner.n_step} the first rewards of a target come from the exploring "
            f"policy, so the learned distribution is not that of the policy under "
            f"{label('risk', target)}: set n_step 1 to avoid it."
        )
    return found


def busy_cores() -> float:
    """Return the mean number of cores that were busy in the last minute, or 0 if unknown."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
