"""Describe a run before it starts, and warn about settings that are probably not intended."""

import os

import torch

from quantail import registry
from quantail.networks import head_class, head_config
from quantail.recipes import parts_of
from quantail.replay import ReplayStore, sampler_class
from quantail.replay.frames import is_compressed
from quantail.replay.memory import human_bytes
from quantail.runs.folder import RunFolder, RunInfo
from quantail.settings import Settings
from quantail.text import counted
from quantail.training.risk_config import describe_risk


def replay_bytes(info: RunInfo) -> int:
    """Return the memory that the replay buffer needs, with its sampler."""
    capacity = info.settings.buffer_size
    sampling = sampler_class(info.settings).bytes_needed(capacity)
    return ReplayStore.bytes_needed(info.observation, capacity) + sampling


def description(folder: RunFolder, info: RunInfo, device: torch.device) -> dict[str, str]:
    """Return the lines that describe a run before it starts."""
    s, shape = info.settings, "×".join(str(n) for n in info.observation.input_shape)
    distribution = head_class(s).describe(head_config(s))
    parts = [one for one in ("double", "dueling", "noisy") if getattr(s, one) and s.is_active(one)]
    parts += [registry.label("target", s.target)] if s.target != Settings.target else []
    steps = [f"{s.n_step}-step"] if s.n_step > 1 else []
    learning = (
        f"{', '.join([distribution, *parts, *steps])}, batch {s.batch_size}, "
        f"learning rate {s.learning_rate:g}, "
        f"an update every {s.train_frequency} steps from step {s.learning_starts:,}"
    )
    agent = " ".join([s.agent, *parts_of(s)])
    memory = f"{human_bytes(replay_bytes(info))} of memory"
    if is_compressed(info.observation):
        memory = f"compressed, about {memory}"
    return {
        "environment": f"{info.env}, observation {shape}, {info.actions.count} "
        f"{'action' if info.actions.count == 1 else 'actions'}",
        "agent": f"{agent}, risk {describe_risk(s)}, preset {info.preset}",
        "learning": learning,
        "replay": f"{registry.label('sampler', s.sampler)}, {s.buffer_size:,} steps, {memory}",
        "budget": f"{s.steps:,} steps ({s.steps * info.frames_per_step:,} frames), seed {s.seed}, "
        f"{counted(s.total_envs, 'environment')}, "
        f"{device.type} with {counted(info.threads, 'thread')}",
        **(
            {"engine": f"ray, {s.actors} actors; not reproducible bit for bit"}
            if s.engine == "ray"
            else {}
        ),
        "folder": str(folder.path),
    }


def warnings_about(info: RunInfo) -> list[str]:
    """Return warnings about the settings of a run on this machine, a sentence each."""
    s, found = info.settings, []
    busy = busy_cores()
    if info.threads > 1 and busy >= 1:
        found.append(
            f"about {busy:.0f} of the machine's {os.cpu_count()} cores were busy in the last minute: "
            "several threads are slow on busy cores, and --threads 1 may be faster."
        )
    if not s.noisy and s.engine == "local" and s.epsilon_start == s.epsilon_end == 0:
        found.append("noisy is no and epsilon_start and epsilon_end are 0: the agent never explores.")
    risk = describe_risk(s)
    if risk == "neutral":
        return found
    if head_class(s).mean_only:
        found.append(
            f"{s.agent} learns only the mean return, so risk {risk} does not change its actions, only "
            "which checkpoint is considered best. Use an agent such as iqn to learn the distribution."
        )
    elif s.n_step > 1:
        found.append(
            f"with n_step {s.n_step} the first rewards of a target come from the exploring policy, so "
            f"the learned distribution is not that of the policy under {risk}: set n_step 1 to avoid it."
        )
    return found


def busy_cores() -> float:
    """Return the mean number of cores that were busy in the last minute, or 0 if unknown."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
