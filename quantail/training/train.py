"""Starting a run, going on with one, and loading what it learned."""

import os
from pathlib import Path
from typing import Any

import torch

from quantail.acting.agent import Agent, Risk
from quantail.envs import EnvSource, default_preset, make, specs_of
from quantail.envs.make import env_from_file, name_of, require_fresh
from quantail.errors import DIVERGED, QuantailError
from quantail.networks import build_network
from quantail.observations import ActionSpec, ObservationSpec
from quantail.recipes import PRESETS, compose, parts_of
from quantail.registry import Trust, origin_of
from quantail.replay import PrioritizedSampler, ReplayStore, require_memory
from quantail.replay.frames import compresses
from quantail.replay.memory import human_bytes
from quantail.risk import parse_risk
from quantail.settings import RISKS, Settings
from quantail.training.allocator import keep_large_blocks
from quantail.training.attitude import Attitude, attitude_of, described, with_plain_risks
from quantail.training.checkpoints import Checkpoint, Checkpoints
from quantail.training.reporter import Reporter
from quantail.training.run_folder import RunFolder, RunInfo, default_folder
from quantail.training.trainer import Trainer
from quantail.training.unsaved import require_never_saved


def train(
    env: EnvSource,
    *,
    agent: str | None = None,
    risk: Risk | None = None,
    preset: str | None = None,
    out: str | Path | None = None,
    reporter: Reporter | None = None,
    trust: Trust = (),
    **settings: Any,
) -> Agent:
    """Train an agent and return it; the run stays in the folder `out`.

    `env` is the id of a Gymnasium environment or a function that makes one. `agent` and `risk` default
    to "iqn" and "neutral". `preset` is a name, the path of a TOML file, or by default what fits the
    environment. Any other setting goes by its name: `steps=200_000, seed=1, envs=8, kappa=0.5`.
    `reporter=quantail.progress()` shows what the command line shows. `trust` are modules that a preset
    file may name, such as that of `risk = "my_risks:beta"`.
    """
    trainer = prepare(
        env, agent=agent, risk=risk, preset=preset, out=out, reporter=reporter, trust=trust, **settings
    )
    with trainer.folder.held():
        return trainer.run()


def prepare(
    env: EnvSource,
    *,
    agent: str | None = None,
    risk: Risk | None = None,
    preset: str | None = None,
    out: str | Path | None = None,
    reporter: Reporter | None = None,
    trust: Trust = (),
    **settings: Any,
) -> Trainer:
    """A run that has its folder and is about to begin; what `train` takes."""
    fitting = default_preset(env)
    preset = preset or fitting
    chosen_by_name = {"agent": agent, "risk": None if risk is None else str(parse_risk(risk))}
    changes = settings | {name: value for name, value in chosen_by_name.items() if value is not None}
    chosen = compose(preset, changes, base=fitting)
    named = [env, *(value for name, value in changes.items() if name in RISKS)]
    origin = None if preset in PRESETS else origin_of(preset, trust, *named)
    measure = parse_risk(chosen.risk, origin) if risk is None else parse_risk(risk)
    attitude = attitude_of(chosen, measure, origin)
    chosen = with_plain_risks(chosen, measure, attitude)
    observation, actions = _specs(env, chosen)
    require_fresh(env)
    build_network(chosen, observation, actions.count)  # what does not fit is refused before the run is
    threads = chosen.threads or torch.get_num_threads()
    info = RunInfo(name_of(env), preset, chosen, observation, actions, threads)
    folder = RunFolder(out or default_folder(info.env, chosen.agent, chosen.seed))
    folder.require_new()
    reporter = reporter or Reporter()
    _open(folder, info, reporter)
    with folder.created(info):  # if this fails, nothing has begun: a second try finds the folder free
        return _trainer(folder, info, env, attitude, reporter)


def resume(
    run: str | Path,
    *,
    steps: int | None = None,
    checkpoint: str = "last",
    env: EnvSource | None = None,
    risk: Risk | None = None,
    reporter: Reporter | None = None,
    trust: Trust = (),
) -> Agent:
    """Go on with a run exactly where its last checkpoint stands, to `steps` in all if given.

    A run whose environment or risk was a function of yours needs it again. `trust` are the modules that
    may be imported where run.json names them; those of `env` and `risk` may too.
    """
    if checkpoint == "best":
        raise QuantailError("checkpoint best serves to act: resume takes last or previous.")
    folder = RunFolder(run)
    info = folder.read()
    folder.require_plain()
    if steps is not None:
        longer = info.settings.with_changes({"steps": steps})
        info = RunInfo(**{**vars(info), "settings": longer})
    origin = origin_of(folder.path / "run.json", trust, env, risk)
    measure = parse_risk(info.settings.risk, origin) if risk is None else parse_risk(risk)
    if str(measure) != info.settings.risk:
        raise QuantailError(f"{folder.path} is trained with risk {info.settings.risk}, not {measure}.")
    attitude = attitude_of(info.settings, measure, origin)
    source = env_from_file(info.env, origin) if env is None else env
    if _specs(source, info.settings) != (info.observation, info.actions):
        raise QuantailError(f"{name_of(source)} is not the environment of {folder.path}, {info.env}.")
    reporter = reporter or Reporter()
    with folder.held():
        found = _found(folder, checkpoint, info.settings)
        _open(folder, info, reporter)
        if found is None:
            reporter.warned(f"{folder.path} was stopped before it saved: it begins again at step 0.")
            folder.clear_tables()
        trainer = _trainer(folder, info, source, attitude, reporter)
        if found is not None:
            trainer.restore(found)
        if steps is not None:
            folder.extend(steps)
        return trainer.run()


def _found(folder: RunFolder, which: str, settings: Settings) -> Checkpoint | None:
    """The checkpoint to go on from; None where the run was killed before it saved, and begins again."""
    checkpoints = Checkpoints(folder.checkpoints)
    checkpoints.repair()
    if which == "last" and not checkpoints.names():
        require_never_saved(folder, settings)
        return None
    found = checkpoints.read(which, to_resume=True)
    with checkpoints.blamed(found.path):
        done, evaluated = int(found.state["steps"]), int(found.state["done_at"]["evaluation"])
    if done >= settings.steps and evaluated >= done:
        raise QuantailError(
            f"{folder.path} has done its {done:,} steps: give a larger total with --steps."
        )
    return found


def load(
    run: str | Path,
    checkpoint: str | None = None,
    *,
    device: str = "auto",
    risk: Risk | None = None,
    trust: Trust = (),
) -> Agent:
    """The agent of a run: its best checkpoint unless told, or the last where none is best yet.

    Its risk measure is the run's own unless told. `trust` are the modules that may be imported where
    run.json names them: that of the environment when it is made, that of the risk measure at once.
    """
    folder = RunFolder(run)
    info = folder.read()
    origin = origin_of(folder.path / "run.json", trust, risk)
    measure = parse_risk(info.settings.played_risk(), origin) if risk is None else parse_risk(risk)
    checkpoints = Checkpoints(folder.checkpoints)
    if checkpoint is None:
        checkpoint = "best" if (folder.checkpoints / "best").exists() else "last"
    found = checkpoints.read(str(checkpoint))
    network = build_network(info.settings, info.observation, info.actions.count)
    with checkpoints.blamed(found.path, to_resume=False):
        weights = {k: torch.from_numpy(v) for k, v in found.arrays("agent").items()}
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            raise QuantailError(f"{found.path} does not fit the network of run.json.") from error
        if not all(tensor.isfinite().all() for tensor in weights.values()):
            raise QuantailError(f"{found.path} holds weights that are not finite: {DIVERGED}")
    return Agent(
        network.to(pick_device(device)),
        info.settings,
        info.observation,
        info.actions,
        env_from_file(info.env, origin),
        measure,
        found.state["steps"],
    )


def pick_device(name: str) -> torch.device:
    """The device of this name; auto takes an accelerator where there is one."""
    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        name = next(device for device, present in there.items() if present)
    if not there.get(name, False):
        raise QuantailError(f"device {name} is not on this machine: it takes auto or cpu here.")
    return torch.device(name)


def _specs(source: EnvSource, settings: Settings) -> tuple[ObservationSpec, ActionSpec]:
    env = make(source, settings)
    env.close()
    return specs_of(env)


def _open(folder: RunFolder, info: RunInfo, reporter: Reporter) -> None:
    """Say what is about to run, and refuse what does not fit in memory."""
    s = info.settings
    needed = ReplayStore.bytes_needed(info.observation, s.replay_capacity)
    if s.replay == "prioritized":
        needed += PrioritizedSampler.bytes_needed(s.replay_capacity)
    reporter.opening(opening_lines(folder, info, pick_device(s.device), needed))
    require_memory(needed)
    busy = other_work()
    if info.threads > 1 and busy >= 1:
        reporter.warned(
            f"about {busy:.0f} of the machine's {os.cpu_count()} cores were busy in the last minute: "
            "threads that wait for each other on busy cores are slow, and --threads 1 may be faster."
        )
    if not s.noisy and s.engine == "local" and s.epsilon_start == s.epsilon_end == 0:
        reporter.warned("noisy is no and epsilon_start and epsilon_end are 0: the agent never explores.")
    attitude = described(s)
    if attitude == "neutral":
        return
    if s.head == "expected":
        reporter.warned(
            f"{s.agent} learns the mean alone, so risk {attitude} changes nothing in what it does, only "
            "which checkpoint is called best; an agent such as iqn learns the distribution."
        )
    elif s.n_step > 1:
        reporter.warned(
            f"with n_step {s.n_step} the first rewards of a target are the exploring policy's, "
            f"so the learned law is not that of the policy under {attitude}; n_step 1 makes it so."
        )


def other_work() -> float:
    """Cores that other programs kept busy in the last minute, as far as the system tells."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _trainer(
    folder: RunFolder, info: RunInfo, source: EnvSource, attitude: Attitude, reporter: Reporter
) -> Trainer:
    torch.set_num_threads(info.threads)
    torch.set_float32_matmul_precision("high" if info.settings.precision == "tf32" else "highest")
    keep_large_blocks()
    return Trainer(folder, info, source, attitude, pick_device(info.settings.device), reporter)


def opening_lines(
    folder: RunFolder, info: RunInfo, device: torch.device, replay_bytes: int
) -> dict[str, str]:
    """What a user should know before a run starts."""
    s, shape = info.settings, "×".join(str(n) for n in info.observation.input_shape)
    law = {
        "expected": "mean alone",
        "categorical": f"{s.atoms} atoms from {s.value_min:g} to {s.value_max:g}",
        "quantiles": f"{s.quantiles} quantiles",
        "implicit": f"N {s.online_samples}, N′ {s.target_samples}, K {s.policy_samples}",
        "fractions": f"{s.quantiles} fractions",
    }[s.head]
    parts = [part for part in ("double", "dueling", "noisy", "munchausen") if getattr(s, part)]
    steps = [f"{s.n_step}-step"] if s.n_step > 1 else []
    learning = (
        f"{', '.join([law, *parts, *steps])}, batch {s.batch_size}, rate {s.learning_rate:g}, "
        f"an update every {s.update_every} steps from step {s.learn_start:,}"
    )
    agent = " ".join([s.agent, *parts_of(s)])
    memory = f"{human_bytes(replay_bytes)} of memory"
    if compresses(info.observation):
        memory = f"compressed, about {memory}"
    return {
        "environment": f"{info.env}, observation {shape}, {info.actions.count} "
        f"{'action' if info.actions.count == 1 else 'actions'}",
        "agent": f"{agent}, risk {described(s)}, preset {info.preset}",
        "learning": learning,
        "replay": f"{s.replay}, {s.replay_capacity:,} steps, {memory}",
        "budget": f"{s.steps:,} steps ({s.steps * s.action_repeat:,} frames), seed {s.seed}, "
        f"{s.lanes} {'environment' if s.lanes == 1 else 'environments'}, "
        f"{device.type} with {info.threads} {'thread' if info.threads == 1 else 'threads'}",
        **(
            {"engine": f"ray, {s.actors} actors; not repeatable bit for bit"}
            if s.engine == "ray"
            else {}
        ),
        "folder": str(folder.path),
    }
