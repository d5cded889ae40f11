"""Short seeded runs that several figures show, trained once for all of them."""

import tempfile
from functools import cache
from pathlib import Path

import quantail

CARTPOLE = {
    "steps": 4_000,
    "learning_rate": 1e-3,
    "learning_starts": 200,
    "epsilon_steps": 1_500,
    "evaluation_every": 400,
    "evaluation_episodes": 10,
    "threads": 1,
}


@cache
def folder() -> Path:
    """Return the folder of the runs, which is removed when the process ends."""
    _keep.append(tempfile.TemporaryDirectory(prefix="quantail-figures-"))
    return Path(_keep[-1].name)


_keep: list[tempfile.TemporaryDirectory[str]] = []


@cache
def cartpole(agent: str, seed: int) -> Path:
    """Return a run of an agent in CartPole."""
    out = folder() / "runs" / f"{agent}-{seed}"
    quantail.train("CartPole-v1", agent=agent, seed=seed, out=out, **CARTPOLE)
    return out


@cache
def world(name: str, steps: int) -> Path:
    """Return a run of `quantail train Quantail/NAME-v0 --agent qr-dqn --threads 1 --steps STEPS`."""
    out = folder() / f"{name}-{steps}"
    quantail.train(f"Quantail/{name}-v0", agent="qr-dqn", steps=steps, out=out, threads=1)
    return out
