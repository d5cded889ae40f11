"""Save and read the results of `quantail eval` in the folder of a run."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quantail.agents.agent import Agent
from quantail.errors import QuantailError, damage
from quantail.evaluation.evaluate import Evaluation
from quantail.evaluation.protocols import Protocol
from quantail.files import check_schema, read_json, write_json
from quantail.runs.checkpoints import Checkpoints
from quantail.runs.folder import RunFolder
from quantail.validation import number, string, whole_number

SCHEMA = 1


def results_folder(run: str | Path) -> Path:
    """Return the folder for results and create it if it does not exist."""
    folder = RunFolder(run).results
    folder.mkdir(exist_ok=True)
    return folder


def save_result(run: str | Path, agent: Agent, evaluation: Evaluation) -> Path:
    """Save an evaluation in its run.

    It replaces an earlier result only if protocol, starts, checkpoint, risk, budget and seed are equal.
    """
    protocol = evaluation.protocol
    budget = f"{protocol.frames}-frames" if protocol.frames else f"{protocol.episodes}-episodes"
    starts = re.sub(r"\W", "-", protocol.starts)
    parts = (protocol.name, protocol.hash, starts, agent.checkpoint, evaluation.risk, budget)
    words = "-".join(str(part) for part in (*parts, f"s{evaluation.seed}") if part != "")
    path = results_folder(run) / f"{re.sub(r'[^a-z0-9.]+', '-', words.lower())}.json"
    content = {
        "schema": SCHEMA,
        "created": datetime.now(UTC).isoformat(timespec="microseconds"),
        "run_seed": agent.config.run.seed,
        "steps": agent.checkpoint,
        "frames": agent.checkpoint * RunFolder(run).read().frames_per_step,
    }
    write_json(path, content | evaluation.to_dict())
    return path


def saved_results(run: str | Path) -> list[dict[str, Any]]:
    """Return all evaluations saved in a run, newest last, with their protocols as `Protocol`."""
    contents = []
    for path in RunFolder(run).results.glob("*.json"):
        content = read_json(path)
        check_schema(path, content, SCHEMA)
        try:
            contents.append(_validated(content))
        except (KeyError, QuantailError) as error:
            raise QuantailError(f"{path} is damaged: {damage(error)}.") from error
    return sorted(contents, key=lambda content: str(content["created"]))


def _validated(content: dict[str, Any]) -> dict[str, Any]:
    """Return a saved result after checking the types of its values."""
    least = {"run_seed": 0, "steps": 0, "frames": 0, "episodes": 1}
    checked: dict[str, Any] = {
        **{name: string(name, content[name]) for name in ("created", "env", "risk")},
        **{name: whole_number(name, content[name], bound) for name, bound in least.items()},
        "mean": number("mean", content["mean"]),
        "protocol": Protocol.from_dict(content["protocol"]),
    }
    returns = content["returns"]
    if not isinstance(returns, list) or len(returns) != checked["episodes"]:
        raise QuantailError(f"returns takes a list of {checked['episodes']} numbers.")
    return content | checked | {"returns": [number("returns", one) for one in returns]}


def pick_result(results: Sequence[dict[str, Any]], run: str | Path) -> dict[str, Any]:
    """Pick one of several comparable results: the best checkpoint's, the longest, then the newest."""
    best = Checkpoints(RunFolder(run).checkpoints).best_steps()
    return max(results, key=lambda one: (one["steps"] == best, one["episodes"], one["created"]))
