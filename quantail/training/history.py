"""What a run wrote, read back for figures and tables; and runs that differ by their seed alone."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.errors import QuantailError
from quantail.evaluation.games import game_of
from quantail.evaluation.protocols import Protocol, own_protocol
from quantail.evaluation.results import Result, read_results
from quantail.files import read_json
from quantail.recipes import parts_of
from quantail.settings import DEFAULTS, Settings
from quantail.training.attitude import described
from quantail.training.checkpoints import Checkpoints
from quantail.training.results import pick_result, saved_results
from quantail.training.run_folder import RunFolder, RunInfo

Array = NDArray[np.float64]

# What does not make another agent of it.
INCIDENTAL = {
    "seed",
    "steps",
    "device",
    "threads",
    "log_every",
    "checkpoint_every",
    "tensorboard",
    "wandb",
}
CURVE = ("steps", "frames", "mean", "q25", "q75")


@dataclass(frozen=True)
class History:
    """One run: what it is, how it learned, what it scored and where its time went."""

    path: Path
    info: RunInfo
    about: dict[str, Any]  # run.json
    curve: dict[str, Array]  # the columns of its evaluations
    random: float  # mean return of random play
    results: list[dict[str, Any]]  # the evaluations kept by `quantail eval`, the newest last
    seconds: dict[str, float]

    @property
    def settings(self) -> Settings:
        return self.info.settings

    @property
    def protocol(self) -> Protocol:
        """That of its learning curve."""
        return own_protocol(self.settings)


@dataclass(frozen=True)
class Group:
    """Runs that differ by their seed alone."""

    label: str
    runs: tuple[History, ...]

    @property
    def env(self) -> str:
        return self.runs[0].info.env

    @property
    def settings(self) -> Settings:
        return self.runs[0].settings

    def curves(self) -> tuple[Array, Array]:
        """Steps at which every run was evaluated, and the means there: [points], [seeds, points]."""
        steps = set.intersection(*({float(s) for s in run.curve["steps"]} for run in self.runs))
        common = np.array(sorted(steps))
        means = [run.curve["mean"][np.isin(run.curve["steps"], common)] for run in self.runs]
        return common, np.array(means).reshape(len(self.runs), len(common))


def read_history(run: str | Path) -> History:
    """A run as its files have it, also while it goes on."""
    folder = RunFolder(run)
    info = folder.read()
    table = folder.table("evaluations")
    try:
        rows = []
        if table.exists():
            with table.open(encoding="utf-8") as file:
                rows = [row for row in csv.DictReader(file) if row["max"]]
        agent = [row for row in rows if row["policy"] == "agent"]
        random = [float(row["mean"]) for row in rows if row["policy"] == "random"]
        curve = {name: np.array([float(row[name]) for row in agent]) for name in CURVE}
    except (KeyError, ValueError, csv.Error) as error:
        raise QuantailError(f"{table} is damaged: {error!r}.") from error
    checkpoints = Checkpoints(folder.checkpoints)
    seconds = checkpoints.read("last").state["seconds"] if checkpoints.names() else {}
    return History(
        path=folder.path,
        info=info,
        about=read_json(folder.path / "run.json"),
        curve=curve,
        random=random[0] if random else float("nan"),
        results=saved_results(run),
        seconds=seconds,
    )


def group_runs(runs: Sequence[History]) -> list[Group]:
    """Runs by environment and settings; a label tells what differs where the agent's name does not."""
    kinds: dict[tuple[str, str], list[History]] = {}
    for run in runs:
        kept = {k: v for k, v in run.settings.to_dict().items() if k not in INCIDENTAL}
        kinds.setdefault((run.info.env, repr(kept)), []).append(run)
    for members in kinds.values():
        seeds = [run.settings.seed for run in members]
        for run, seed in zip(members, seeds, strict=True):
            if seeds.count(seed) > 1:
                raise QuantailError(
                    f"{run.path} is one of two runs with seed {seed} and the same settings."
                )
    names = [agent_name(members[0]) for members in kinds.values()]
    groups = []
    for members, name in zip(kinds.values(), names, strict=True):
        preset = members[0].info.preset
        rivals = [
            others[0].settings
            for others, other in zip(kinds.values(), names, strict=True)
            if other == name and others[0].info.preset == preset
        ]
        ordered = tuple(sorted(members, key=lambda run: run.settings.seed))
        groups.append(Group(", ".join([name, *_differing(members[0].settings, rivals)]), ordered))
    return groups


def agent_name(run: History) -> str:
    """What an agent is called in tables: its recipe, what differs from it, and its risk."""
    settings = run.settings
    named = " ".join([settings.agent, *parts_of(settings)])
    return named if described(settings) == "neutral" else f"{named}, {described(settings)}"


def run_results(group: Group, run: History, protocol: str | None = None) -> list[Result]:
    """The result of a run under each protocol, and under each risk that its agent was evaluated with."""
    kinds: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for content in run.results:
        one: Protocol = content["protocol"]
        if protocol is None or protocol in (one.name, one.label):
            kinds.setdefault((one.hash, one.starts, content["risk"]), []).append(content)
    found = []
    for (_, _, risk), contents in kinds.items():
        if picked := pick_result(contents, run.path, risk):
            found.append(result_of(group, run, picked))
    return found


def result_of(group: Group, run: History, content: dict[str, Any]) -> Result:
    """A kept evaluation as a row of a table."""
    protocol: Protocol = content["protocol"]
    other = "" if content["risk"] == run.settings.played_risk() else f", played with {content['risk']}"
    return Result(
        agent=f"{group.label}{other}",
        game=game_of(run.info.env),
        seed=str(run.settings.seed),
        score=content["mean"],
        protocol=protocol.label,
        starts=protocol.starts,
        frames=str(content["frames"]),
        episodes=str(content["episodes"]),
        source=str(run.path),
    )


def gather_results(sources: Iterable[str | Path], protocol: str | None = None) -> list[Result]:
    """The results of runs and of CSV tables, those under one protocol alone if it is named."""
    paths = [Path(source) for source in sources]
    tables = [path for path in paths if path.suffix.lower() == ".csv"]
    gathered: list[Result] = []
    for group in group_runs([read_history(path) for path in paths if path not in tables]):
        for run in group.runs:
            found = run_results(group, run, protocol)
            if not found:
                raise QuantailError(_nothing(run, protocol))
            gathered += found
    for path in tables:
        found = [
            one for one in read_results(path) if protocol is None or one.protocol.startswith(protocol)
        ]
        if not found:
            raise QuantailError(f"{path} has no result under protocol {protocol}.")
        gathered += found
    return gathered


def _nothing(run: History, protocol: str | None) -> str:
    if not run.results:
        return f"{run.path} has no result: make one with `quantail eval {run.path} --protocol NAME`."
    there = ", ".join(sorted({content["protocol"].name for content in run.results}))
    return f"{run.path} has no result under protocol {protocol}: it has {there}."


def _differing(settings: Settings, rivals: Sequence[Settings]) -> list[str]:
    names = [
        name
        for name in DEFAULTS
        if name not in INCIDENTAL and len({repr(getattr(one, name)) for one in rivals}) > 1
    ]
    return [f"{name} {getattr(settings, name)}" for name in names]
