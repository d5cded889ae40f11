"""Train agents in the worlds with known laws, and measure how near their laws are to the exact ones.

    python benchmarks/worlds.py [--worlds W …] [--agents A …] [--seeds S …] [--out DIR] [--set name=value …]

One run after another, with one thread; runs that are in DIR already are not trained again. Every run is
a row: the 1-Wasserstein distance and the error of CVaR(0.1), over all states and actions ("all") and
over those that the best policy or one deviation from it comes by ("near").
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

import quantail
from quantail.envs.worlds import WORLDS
from quantail.errors import QuantailError
from quantail.evaluation.known_laws import nearness


def full(name: str) -> str:
    return f"Quantail/{name}-v0"


def trained(out: Path, world: str, agent: str, seed: int, changes: dict[str, str]) -> quantail.Agent:
    """The weights of the end of a run of this world, agent and seed."""
    out.mkdir(exist_ok=True, parents=True)
    run = out / f"{world}-{agent}-{seed}"
    if not run.exists():
        quantail.train(full(world), agent=agent, seed=seed, out=run, threads=1, **changes)
    return quantail.load(run, "last")


def main() -> None:
    known = [name.removeprefix("Quantail/").removesuffix("-v0") for name in WORLDS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="+", default=known, choices=known)
    parser.add_argument("--agents", nargs="+", default=["iqn", "qr-dqn"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--set", nargs="*", default=[], metavar="name=value")
    asked = parser.parse_args()
    changes = dict(word.split("=", 1) for word in asked.set)
    out = asked.out or Path(tempfile.mkdtemp())
    print("| world | agent | seed | W1 mean, all | W1 max, all | tail mean, all | tail max, all | W1 max, near | tail max, near | seconds |")
    print("|" + "---|" * 10)
    for world in asked.worlds:
        for agent in asked.agents:
            for seed in asked.seeds:
                began = time.perf_counter()
                mine = trained(out, world, agent, seed, changes)
                seconds = time.perf_counter() - began
                rows = nearness(mine, WORLDS[full(world)]())
                apart = np.array([row.distance for row in rows])
                tail = np.abs([row.tail_error for row in rows])
                near = np.array([row.near for row in rows])
                figures = (
                    apart.mean(), apart.max(), tail.mean(), tail.max(), apart[near].max(), tail[near].max()
                )
                told = " | ".join(f"{figure:.2f}" for figure in figures)
                print(f"| {world} | {agent} | {seed} | {told} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
