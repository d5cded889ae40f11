"""Train agents in the worlds with known laws, and measure how near their laws are to the exact ones.

    python benchmarks/worlds.py [--worlds W …] [--agents A …] [--seeds S …] [--out DIR] [--set NAME=VALUE …]

One run after another, with one thread; runs that are in DIR already are not trained again. Every run is
a row of Markdown: the 1-Wasserstein distance (W1) and the error of CVaR(0.1), over all states and actions
("all") and over those that the best policy, or one deviation from it, comes by ("near").
"""  # noqa: E501

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import quantail
from quantail.envs.worlds import WORLDS
from quantail.evaluation.known_laws import nearness
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


def trained(out: Path, world: str, agent: str, seed: int, changes: dict[str, str]) -> quantail.Agent:
    """The weights of the end of a run of this world, agent and seed."""
    run = out / f"{world}-{agent}-{seed}"
    if not run.exists():
        quantail.train(world_id(world), agent=agent, seed=seed, out=run, threads=1, **changes)
    return quantail.load(run, "last")


def measured(agent: quantail.Agent, world: str) -> list[float]:
    """The figures of a run."""
    rows = nearness(agent, WORLDS[world_id(world)]())
    apart = np.array([row.distance for row in rows])
    tail = np.abs([row.tail_error for row in rows])
    near = np.array([row.near for row in rows])
    whole = [apart.mean(), apart.max(), tail.mean(), tail.max()]
    return [*map(float, whole), float(apart[near].max()), float(tail[near].max())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--agents", nargs="+", default=["iqn", "qr-dqn"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--out", type=Path, help="folder of the runs [a temporary one]")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="other settings")
    asked = parser.parse_args()
    changes = dict(word.split("=", 1) for word in asked.set)
    out = asked.out or Path(tempfile.mkdtemp())
    out.mkdir(parents=True, exist_ok=True)
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for world in asked.worlds:
        for agent in asked.agents:
            for seed in asked.seeds:
                began = time.perf_counter()
                mine = trained(out, world, agent, seed, changes)
                seconds = time.perf_counter() - began
                told = " | ".join(f"{figure:.2f}" for figure in measured(mine, world))
                print(f"| {world} | {agent} | {seed} | {told} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
