"""Start and resume runs, and load their agents."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from quantail import registry
from quantail.agents.agent import Agent, Risk
from quantail.config import Config, coerce, require_config
from quantail.envs import EnvSource, find_family, make, specs_of
from quantail.envs.source import env_from_file, name_of, require_fresh
from quantail.errors import DIVERGED, QuantailError
from quantail.evaluation.protocols import own_protocol
from quantail.networks import TORCH, build_network
from quantail.networks.trial import try_network
from quantail.recipes import configure
from quantail.replay import require_memory
from quantail.risk import parse_risk
from quantail.risk.config import RiskMeasures
from quantail.runs.checkpoints import Checkpoint, Checkpoints
from quantail.runs.folder import RunFolder, RunInfo, default_folder
from quantail.spaces import ActionSpec, ObservationSpec
from quantail.text import counted
from quantail.training.build import build_parts
from quantail.training.callbacks import Callback, callback_list
from quantail.training.describe import description, replay_bytes, warnings_about
from quantail.training.progress import require_metric_name
from quantail.training.trainer import Trainer
from quantail.training.unsaved import require_never_saved
from quantail.trust import Trust, origin_of


def train(
    env: EnvSource,
    *,
    config: Config | None = None,
    agent: str | None = None,
    risk: Risk | None = None,
    preset: str | None = None,
    out: str | Path | None = None,
    callbacks: Iterable[Callback] | None = None,
    trust: Trust = (),
    **settings: Any,
) -> Agent:
    """Train an agent and return it; the run is saved in the folder `out`.

        agent = quantail.train("CartPole-v1", agent="iqn", steps=20_000, seed=1)

    While the run lasts, torch uses the number of threads and the precision of the settings; afterwards
    your process has its own again.

    Args:
        env: The id of a Gymnasium environment, or a function that makes one.
        config: All settings at once, as `quantail.configure` and `Config.replace` return them. It takes
            the place of `agent`, `preset` and `settings`; beside it, `risk` is only for a Python
            function that the configuration names.
        agent: The name of an agent; by default "iqn".
        risk: The risk measure of training and evaluation; by default "neutral".
        preset: The name of a preset or the path of a TOML file; by default the preset for the
            environment.
        out: The folder of the run; by default a new one in `runs/`.
        callbacks: Instances of `quantail.Callback`, such as `quantail.ProgressBar()`, which prints what
            the command line prints.
        trust: Modules that a preset file may import, for example for `risk = "my_risks:beta"`.
        settings: Any other settings by name: `steps=200_000, num_envs=8, kappa=0.5`.

    Returns:
        The agent with the weights of the end of the run. `quantail.load(run)` returns the best ones.
    """
    named = {"agent": agent, "preset": preset, **settings}
    given = {name: value for name, value in named.items() if value is not None}
    if config is None:
        config = configure(env, risk=risk, trust=trust, **given)
    else:
        config = require_config(config)
        if risk is not None and not config.risk.is_named_by(risk):
            given["risk"] = risk
        if given:
            raise QuantailError(
                f"config holds all settings, so {', '.join(given)} cannot be given as well: use "
                "config.replace(...)."
            )
    trainer = prepare(env, config, risk=risk, out=out, callbacks=callbacks)
    with trainer.folder.held():
        return trainer.run()


def prepare(
    env: EnvSource,
    config: Config,
    *,
    risk: Risk | None = None,
    out: str | Path | None = None,
    callbacks: Iterable[Callback] | None = None,
) -> Trainer:
    """Create the folder of a run and return its trainer.

    `risk` is the measure that the configuration names, if it is a Python function.
    """
    family = find_family(env)
    if config.environment.family.name != registry.text_of("family", family.name):
        raise QuantailError(
            f"the configuration is for the environments of the family "
            f"{config.environment.family.label}, and {name_of(env)} is of the family {family.name}."
        )
    measure = parse_risk(config.risk.risk if risk is None else risk)
    risks = config.risk.measures(measure)
    config = replace(config, risk=config.risk.canonical(measure, risks))
    observation, actions = _specs(env, config)
    require_fresh(env)
    trial = try_network(config.network, config.head, observation, actions.count)
    for metric in trial.metrics:
        require_metric_name(metric)
    kernels = trial.kernels if pick_device(config.run.device).type == "cpu" else TORCH
    threads = config.run.threads or torch.get_num_threads()
    protocol = own_protocol(find_family(env, config.environment), config)
    info = RunInfo(name_of(env), config, observation, actions, protocol, threads, kernels)
    folder = RunFolder(out or default_folder(info.env, config.run.agent, config.run.seed))
    folder.require_new()
    called = callback_list(callbacks)
    require_memory(replay_bytes(info))
    with folder.created(info):  # removes the folder again if the trainer cannot be built
        return _build(folder, info, env, risks, called)


def _build(
    folder: RunFolder,
    info: RunInfo,
    source: EnvSource,
    risks: RiskMeasures,
    callbacks: Sequence[Callback],
) -> Trainer:
    device = pick_device(info.config.run.device)
    lines = description(folder, info, device)
    trainer = Trainer(build_parts(folder, info, source, risks, device, callbacks, lines))
    for sentence in warnings_about(info):
        trainer.callbacks.warn(sentence)
    return trainer


def resume(
    run: str | Path,
    *,
    steps: int | None = None,
    checkpoint: str = "last",
    env: EnvSource | None = None,
    risk: Risk | None = None,
    callbacks: Iterable[Callback] | None = None,
    trust: Trust = (),
    threads: int | None = None,
) -> Agent:
    """Resume a run from its last checkpoint, as if it had never stopped.

    The result is bit for bit that of an uninterrupted run, if the number of threads is the same.

    Args:
        run: The folder of the run.
        steps: A new total number of steps; by default that of the settings.
        checkpoint: "last", "previous", or a number of steps.
        env: The environment, if it was a Python function.
        risk: The risk measure, if it was a Python function.
        callbacks: The callbacks again, whose states are restored.
        trust: Modules that run.json may import, besides those of `env` and `risk`.
        threads: Number of CPU threads; by default that of the run's settings or, if that is 0, the one
            that torch has now. If the run had another number in force, a warning says that its last bits
            may differ.

    Returns:
        The agent with the weights of the end of the run.
    """
    if checkpoint == "best":
        raise QuantailError("checkpoint best is only for acting: resume takes last or previous.")
    folder = RunFolder(run)
    info = folder.read()
    folder.require_no_links()
    wanted = info.config.run.threads if threads is None else int(coerce("threads", threads))
    earlier, info = info.threads, replace(info, threads=wanted or torch.get_num_threads())
    if steps is not None:
        info = replace(info, config=info.config.replace(steps=steps))
    origin = origin_of(folder.path / "run.json", trust, env, risk)
    info = replace(info, config=info.config.loaded(origin))
    if info.kernels == TORCH:  # what the run was trained with, also where there are kernels now
        info = replace(info, config=info.config.replace(kernels="torch"))
    measure = parse_risk(info.config.risk.risk, origin) if risk is None else parse_risk(risk)
    if str(measure) != info.config.risk.risk:
        raise QuantailError(
            f"{folder.path} was trained with risk {info.config.risk.risk}, not {measure}."
        )
    risks = info.config.risk.measures(measure, origin)
    source = env_from_file(info.env, origin) if env is None else env
    if _specs(source, info.config) != (info.observation, info.actions):
        raise QuantailError(f"{name_of(source)} is not the environment of {folder.path}, {info.env}.")
    called = callback_list(callbacks)
    require_memory(replay_bytes(info))
    with folder.held():
        found = _find_checkpoint(folder, checkpoint, info.config)
        if found is None:
            folder.clear_tables()
        trainer = _build(folder, info, source, risks, called)
        if info.threads != earlier:
            trainer.callbacks.warn(
                f"{folder.path} was trained with {counted(earlier, 'thread')} and continues with "
                f"{counted(info.threads, 'thread')}: its last bits may differ from those of a run that "
                f"never stopped, which --threads {earlier} (threads={earlier} in Python) avoids."
            )
        if trainer.learner.online.kernels != info.kernels:
            trainer.callbacks.warn(
                f"{folder.path} was trained with compiled kernels and continues with torch alone: its "
                "last bits may differ from those of a run that never stopped. pip install "
                "'quantail[fast]' brings the kernels."
            )
        if found is None:
            trainer.callbacks.warn(
                f"{folder.path} was stopped before its first save: it begins again at step 0."
            )
        else:
            trainer.restore(found)
        trainer.start()
        kernels = trainer.learner.online.kernels
        folder.record(steps=info.config.run.steps, threads=info.threads, kernels=kernels)
        return trainer.run()


def _find_checkpoint(folder: RunFolder, which: str, config: Config) -> Checkpoint | None:
    """Return the checkpoint to resume from, or None if the run was killed before its first save."""
    checkpoints = Checkpoints(folder.checkpoints)
    checkpoints.repair()
    if which == "last" and not checkpoints.names():
        require_never_saved(folder, config)
        return None
    found = checkpoints.read(which, to_resume=True)
    if not found.is_resumable:
        raise QuantailError(
            f"{found.path} holds the weights of the agent alone, so training cannot continue from it: "
            "use the last or previous checkpoint of a run."
        )
    with checkpoints.explain_damage(found.path):
        complete = found.is_complete(config.run.steps)
    if complete:
        raise QuantailError(
            f"{folder.path} has completed its {found.steps:,} steps: give a larger total with --steps."
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
    """Load the agent of a run, or one that `agent.save` wrote.

    Args:
        run: The folder of the run.
        checkpoint: "last", "best", "previous" or a number of steps; by default the best one, or the last
            if there is no best one yet.
        device: "auto", "cpu", "cuda" or "mps".
        risk: The agent's risk measure; by default that of the run's evaluations.
        trust: Modules that run.json may import: that of the risk measure now, and that of the
            environment when it is made.
    """
    folder = RunFolder(run)
    info = folder.read()
    origin = origin_of(folder.path / "run.json", trust, risk)
    info = replace(info, config=info.config.loaded(origin))
    measure = parse_risk(info.config.risk.played, origin) if risk is None else parse_risk(risk)
    checkpoints = Checkpoints(folder.checkpoints)
    if checkpoint is None:
        checkpoint = "best" if (folder.checkpoints / "best").exists() else "last"
    found = checkpoints.read(str(checkpoint))
    network = build_network(info.config.network, info.config.head, info.observation, info.actions.count)
    with checkpoints.explain_damage(found.path, to_resume=False):
        weights = {k: torch.from_numpy(v) for k, v in found.state_of("agent").items()}
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            raise QuantailError(
                f"{found.path} does not match the network described in run.json."
            ) from error
        if not all(tensor.isfinite().all() for tensor in weights.values()):
            raise QuantailError(f"{found.path} holds weights that are not finite: {DIVERGED}")
    return Agent(
        network.to(pick_device(device)),
        info.config,
        info.observation,
        info.actions,
        env_from_file(info.env, origin),
        measure,
        found.steps,
    )


def pick_device(name: str) -> torch.device:
    """Return the device of this name; "auto" chooses an accelerator if there is one."""
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        name = next(device for device, present in available.items() if present)
    if not available.get(name, False):
        raise QuantailError(f"device {name} is not available on this machine: use auto or cpu.")
    return torch.device(name)


def _specs(source: EnvSource, config: Config) -> tuple[ObservationSpec, ActionSpec]:
    """Return the specs of an environment. Whether it has masks shows at its first reset."""
    env = make(source, config.environment)
    try:
        env.reset(seed=0)
        observation, actions = specs_of(env)
        return observation, replace(actions, masked=env.action_mask is not None)
    finally:
        env.close()
