"""Train agents in tabular worlds and compare their return distributions with the exact ones.

    python benchmarks/worlds.py [--worlds W …] [--agents A …] [--seeds S …] [--out DIR]
                                [--set NAME=VALUE …]

Runs are trained one after another with one thread; runs that are already in DIR are not trained again.
Every run prints a row of Markdown: the 1-Wasserstein distance (W1) and the error of CVaR(0.1), over all
states and actions ("all") and over those reached by the best policy or one deviation from it ("near").
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import quantail
from quantail.envs.worlds import WORLDS
from quantail.evaluation.known_distributions import compare_with_exact
from quantail.registration import NAMES, world_id

COLUMNS = (
    "world",
    "agent",
    "seed",
    "W1 mean, all",
    "W1 max, all",
    "CVaR error mean, all",
    "CVaR error max, all",
    "W1 max, near",
    "CVaR error max, near",
    "seconds",
)


def train(out: Path, world: str, agent: str, seed: int, changes: dict[str, str]) -> quantail.Agent:
    """Return the final agent of this world, agent name and seed; train it if there is no run yet."""
    run = out / f"{world}-{agent}-{seed}"
    if not run.exists():
        quantail.train(world_id(world), agent=agent, seed=seed, out=run, threads=1, **changes)
    return quantail.load(run, "last")


def measure(agent: quantail.Agent, world: str) -> list[float]:
    """Return the errors of an agent, in the order of the columns."""
    rows = compare_with_exact(agent, WORLDS[world_id(world)]())
    distance = np.array([row.distance for row in rows])
    tail = np.abs([row.tail_error for row in rows])
    near = np.array([row.near_policy for row in rows])
    overall = [distance.mean(), distance.max(), tail.mean(), tail.max()]
    return [*map(float, overall), float(distance[near].max()), float(tail[near].max())]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--agents", nargs="+", default=["iqn", "qr-dqn"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--out", type=Path, help="folder of the runs [a temporary one]")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="other settings")
    arguments = parser.parse_args(words)
    changes = dict(word.split("=", 1) for word in arguments.set)
    out = arguments.out or Path(tempfile.mkdtemp())
    out.mkdir(parents=True, exist_ok=True)
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for world in arguments.worlds:
        for agent in arguments.agents:
            for seed in arguments.seeds:
                start = time.perf_counter()
                mine = train(out, world, agent, seed, changes)
                seconds = time.perf_counter() - start
                errors = " | ".join(f"{error:.2f}" for error in measure(mine, world))
                print(f"| {world} | {agent} | {seed} | {errors} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
