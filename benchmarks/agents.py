"""Train every agent on one environment, evaluate its best checkpoint again, and write a table.

    python benchmarks/agents.py [ENV] [--agents A B] [--seeds 0 1] [--set NAME=VALUE …] [--jobs 2]
                                [--out DIR] [--table CSV]

Each run is a separate process with one thread. Finished runs are kept and interrupted runs are resumed,
so you can stop the command and start it again. The table is CSV; the same rows are also printed.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from quantail.recipes import AGENTS
from quantail.runs.folder import RunFolder
from quantail.runs.tables import read_rows

EPISODES = 100
COLUMNS = (
    "env",
    "agent",
    "seed",
    "steps",
    "random",
    "last",
    "best",
    "best_at",
    "score",
    "steps_per_second",
)


def quantail(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a command of Quantail in a process of its own, with one thread."""
    command = [sys.executable, "-m", "quantail", *map(str, words)]
    threads = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=threads, check=False)


def rows(run: Path, table: str) -> list[dict[str, str]]:
    """Read a CSV table of a run."""
    return read_rows(run / f"{table}.csv")


def is_done(run: Path) -> bool:
    """Return whether a run is complete, with its final evaluation."""
    evaluated = [int(row["steps"]) for row in rows(run, "evaluations")]
    return bool(evaluated) and evaluated[-1] >= RunFolder(run).read().config.run.steps


def train(env: str, agent: str, seed: int, changes: Sequence[str], run: Path) -> None:
    """Train the run in this folder, or resume it if it is not finished."""
    if not run.exists():
        words = ["--agent", agent, "--seed", seed, "--threads", 1, "--quiet", "--out", run]
        answer = quantail("train", env, *words, *(f"--{one.replace('_', '-')}" for one in changes))
    elif is_done(run):
        return
    else:
        answer = quantail("resume", run, "--quiet")
    if answer.returncode:
        raise SystemExit(f"{agent}, seed {seed}: {answer.stderr}")


def measure(env: str, agent: str, seed: int, changes: Sequence[str], run: Path) -> dict[str, object]:
    """Return a table row: the evaluations of training, and the best checkpoint on new episodes."""
    train(env, agent, seed, changes, run)
    answer = quantail("eval", run, "--episodes", EPISODES, "--seed", 1000 + seed, "--json")
    fresh = json.loads(answer.stdout)
    evaluations, timing = rows(run, "evaluations"), rows(run, "timing")
    learned = [row for row in evaluations if row["policy"] == "agent"]
    last = timing[-1]
    row: dict[str, object] = {
        "env": env,
        "agent": agent,
        "seed": seed,
        "steps": int(last["steps"]),
        "random": round(float(evaluations[0]["mean"]), 2),
        "last": round(float(learned[-1]["mean"]), 2),
        "best": round(max(float(row["mean"]) for row in learned), 2),
        "best_at": fresh["checkpoint"],
        "score": round(fresh["mean"], 2),
        "steps_per_second": round(int(last["steps"]) / float(last["seconds"])),
    }
    print(" | ".join(str(row[column]) for column in COLUMNS), flush=True)
    return row


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("env", nargs="?", default="MinAtar/Breakout-v1")
    parser.add_argument("--agents", nargs="+", default=list(AGENTS), choices=list(AGENTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="other settings")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2)))
    parser.add_argument("--out", type=Path, default=Path("runs/agents"))
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args(words)
    arguments.out.mkdir(parents=True, exist_ok=True)
    jobs = [(agent, seed) for seed in arguments.seeds for agent in arguments.agents]

    def work(job: tuple[str, int]) -> dict[str, object]:
        agent, seed = job
        run = arguments.out / f"{agent}-s{seed}"
        return measure(arguments.env, agent, seed, arguments.set, run)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        table = sorted(pool.map(work, jobs), key=lambda row: list(AGENTS).index(str(row["agent"])))
    if arguments.table:
        with arguments.table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
