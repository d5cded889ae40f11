"""Read back what runs wrote, and group runs that differ only by their seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.config import Config
from quantail.errors import QuantailError
from quantail.evaluation.games import family_of
from quantail.evaluation.protocols import Protocol
from quantail.recipes import parts_of
from quantail.runs.checkpoints import Checkpoints
from quantail.runs.folder import RunFolder, RunInfo
from quantail.runs.results import saved_results
from quantail.runs.tables import Columns, read_table

Array = NDArray[np.float64]

# Settings that do not distinguish agents.
INCIDENTAL = {
    "seed",
    "preset",
    "steps",
    "device",
    "threads",
    "log_every",
    "checkpoint_every",
    "keep_checkpoints",
    "tensorboard",
    "wandb",
}
MAX_NAMED = 3  # settings that a label lists one by one
CURVE = ("steps", "frames", "mean", "q25", "q75")


@dataclass(frozen=True)
class History:
    """The description, learning curve, metrics, results and timing of one run."""

    path: Path
    info: RunInfo
    about: dict[str, Any]  # the content of run.json
    curve: dict[str, Array]  # columns of evaluations.csv
    metrics: Columns  # of metrics.csv
    random: float  # mean return of the random policy
    results: list[dict[str, Any]]  # evaluations saved by `quantail eval`, newest last
    steps: int  # at the last checkpoint
    seconds: dict[str, float]  # per phase, up to the last checkpoint

    @property
    def config(self) -> Config:
        return self.info.config

    @property
    def protocol(self) -> Protocol:
        """The protocol of the learning curve."""
        return self.info.protocol


@dataclass(frozen=True)
class Group:
    """Runs that differ only by their seed."""

    label: str
    runs: tuple[History, ...]

    @property
    def env(self) -> str:
        return self.runs[0].info.env

    @property
    def config(self) -> Config:
        return self.runs[0].config

    def curves(self) -> tuple[Array, Array]:
        """Return the steps at which every run was evaluated [points], and the means [seeds, points]."""
        steps = set.intersection(*({float(s) for s in run.curve["steps"]} for run in self.runs))
        common = np.array(sorted(steps))
        means = [run.curve["mean"][np.isin(run.curve["steps"], common)] for run in self.runs]
        return common, np.array(means).reshape(len(self.runs), len(common))


def read_history(run: str | Path) -> History:
    """Read the files of a run, which may still be in progress."""
    folder = RunFolder(run)
    info = folder.read()
    table = read_table(folder.table("evaluations"))
    agent, random = table["policy"] == "agent", table["mean"][table["policy"] == "random"]
    checkpoints = Checkpoints(folder.checkpoints)
    last = checkpoints.read("last") if checkpoints.names() else None
    return History(
        path=folder.path,
        info=info,
        about=folder.about(),
        curve={name: table[name][agent].astype(np.float64) for name in CURVE},
        metrics=read_table(folder.table("metrics")),
        random=float(random[0]) if len(random) else float("nan"),
        results=saved_results(run),
        steps=last.steps if last else 0,
        seconds=last.seconds if last else {},
    )


def group_runs(runs: Sequence[History]) -> list[Group]:
    """Group runs by environment and settings; labels list what differs where agents share a name."""
    kinds: dict[tuple[str, str], list[History]] = {}
    for run in runs:
        kept = {k: v for k, v in run.config.to_dict().items() if k not in INCIDENTAL}
        kinds.setdefault((run.info.env, repr(kept)), []).append(run)
    for members in kinds.values():
        seeds = [run.config.run.seed for run in members]
        for run, seed in zip(members, seeds, strict=True):
            if seeds.count(seed) > 1:
                raise QuantailError(
                    f"{run.path} is one of two runs with seed {seed} and the same settings."
                )
    firsts = [members[0] for members in kinds.values()]
    groups = [
        Group(_label(first, firsts), tuple(sorted(members, key=lambda run: run.config.run.seed)))
        for first, members in zip(firsts, kinds.values(), strict=True)
    ]
    names = [(group.label, group.env) for group in groups]
    assert len(set(names)) == len(names), f"two agents have one name: {names}"
    return groups


def _label(run: History, others: Sequence[History]) -> str:
    """Return the agent's name and the settings that distinguish it from others of that name."""
    rivals = [one.info for one in _rivals(run, others)]
    differing = _differing(run.info, rivals)
    several = len({one.preset for one in rivals}) > 1
    if several and len(differing) > MAX_NAMED:  # name the preset instead of all its settings
        alike = [one for one in rivals if one.preset == run.info.preset]
        differing = [Path(run.info.preset).name, *_differing(run.info, alike)]
        same = [one for one in rivals if Path(one.preset).name == differing[0]]
        if len({one.preset for one in same}) > 1:
            differing[0] = run.info.preset
    return ", ".join([agent_name(run), *differing])


def _rivals(run: History, others: Sequence[History]) -> list[History]:
    """Return the runs with the same agent name that can appear in one table with this run.

    Two runs can if they share the preset or the family of games, directly or through other runs.
    """
    left = {one.path: one for one in others if agent_name(one) == agent_name(run)}
    found = new = [left.pop(run.path)]
    while new:
        new = [one for one in left.values() if any(_related(one.info, other.info) for other in found)]
        found = [*found, *(left.pop(one.path) for one in new)]
    return found


def _related(one: RunInfo, other: RunInfo) -> bool:
    return one.preset == other.preset or family_of(one.env) == family_of(other.env)


def agent_name(run: History) -> str:
    """Return the name of an agent in tables: its recipe, the parts that differ, and its risk measure."""
    config = run.config
    named = " ".join([config.run.agent, *parts_of(config)])
    risk = config.risk.describe()
    return named if risk == "neutral" else f"{named}, {risk}"


def _differing(info: RunInfo, rivals: Sequence[RunInfo]) -> list[str]:
    """Return the settings in which rivals differ, with this run's values."""
    values = [one.config.to_dict() for one in rivals]
    mine = info.config.to_dict()  # of parts from outside too, whose names are dotted
    names = [
        name
        for name in mine
        if name not in INCIDENTAL and len({repr(one.get(name)) for one in values}) > 1
    ]
    return [f"{name} {mine[name]}" for name in names]
