"""The results that `quantail eval` leaves in a run, and reading them again."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quantail.acting.agent import Agent
from quantail.errors import QuantailError
from quantail.evaluation import Evaluation, Protocol
from quantail.files import read_json, write_json
from quantail.training.checkpoints import Checkpoints
from quantail.training.run_folder import RunFolder, check_schema

SCHEMA = 1


def results_folder(run: str | Path) -> Path:
    """Where results go, made if need be."""
    folder = RunFolder(run).results
    folder.mkdir(exist_ok=True)
    return folder


def save_result(run: str | Path, agent: Agent, evaluation: Evaluation) -> Path:
    """Keep an evaluation in its run; only one that asked for just the same is replaced."""
    protocol = evaluation.protocol
    budget = f"{protocol.frames}-frames" if protocol.frames else f"{protocol.episodes}-episodes"
    starts = re.sub(r"\W", "-", protocol.starts)
    parts = (protocol.name, protocol.hash, starts, agent.checkpoint, evaluation.risk, budget)
    words = "-".join(str(part) for part in (*parts, f"s{evaluation.seed}") if part != "")
    path = results_folder(run) / f"{re.sub(r'[^a-z0-9.]+', '-', words.lower())}.json"
    content = {
        "schema": SCHEMA,
        "created": datetime.now(UTC).isoformat(timespec="microseconds"),
        "run_seed": agent.settings.seed,
        "steps": agent.checkpoint,
        "frames": agent.checkpoint * agent.settings.action_repeat,
    }
    write_json(path, content | evaluation.to_dict())
    return path


def saved_results(run: str | Path) -> list[dict[str, Any]]:
    """All evaluations that were kept in a run, the newest last; their protocols as such."""
    contents = []
    for path in RunFolder(run).results.glob("*.json"):
        content = read_json(path)
        check_schema(path, content, SCHEMA)
        try:
            content["protocol"] = Protocol.from_dict(content["protocol"])
            content["mean"] = float(content["mean"])
            whole = {"created", "run_seed", "steps", "frames", "env", "risk", "episodes", "returns"}
        except (KeyError, TypeError, ValueError, QuantailError) as error:
            raise QuantailError(f"{path} is damaged: {error!r}.") from error
        if missing := whole - content.keys():
            raise QuantailError(f"{path} is damaged: it lacks {', '.join(sorted(missing))}.")
        contents.append(content)
    return sorted(contents, key=lambda content: str(content["created"]))


def pick_result(results: list[dict[str, Any]], run: str | Path, risk: str) -> dict[str, Any] | None:
    """Of results under one protocol: the risk's own, of the best checkpoint, the longest, the newest."""
    best = Checkpoints(RunFolder(run).checkpoints).best_steps()
    own = [content for content in results if content["risk"] == risk]
    order = [(content["steps"] == best, content["episodes"], str(content["created"])) for content in own]
    return own[order.index(max(order))] if own else None
