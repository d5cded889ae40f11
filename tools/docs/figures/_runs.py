"""Short seeded runs that several figures show, trained once for all of them."""

import tempfile
from functools import cache
from pathlib import Path

import quantail

CLIFF = {
    "agent": "qr-dqn",
    "steps": 6_000,
    "learning_starts": 200,
    "epsilon_steps": 2_000,
    "evaluation_every": 500,
    "evaluation_episodes": 30,
    "threads": 1,
}
SEEDS = 3


@cache
def folder() -> Path:
    """Return the folder of the runs, which is removed when the process ends."""
    _keep.append(tempfile.TemporaryDirectory(prefix="quantail-figures-"))
    return Path(_keep[-1].name)


_keep: list[tempfile.TemporaryDirectory[str]] = []


@cache
def cliff(risk: str, seed: int) -> Path:
    """Return a run at the windy cliff under a risk measure."""
    out = folder() / f"cliff-{risk.replace(':', '-')}-{seed}"
    quantail.train("Quantail/WindyCliff-v0", out=out, risk=risk, seed=seed, **CLIFF)
    return out


@cache
def world(name: str, steps: int) -> Path:
    """Return a run of `quantail train Quantail/NAME-v0 --agent qr-dqn --threads 1 --steps STEPS`."""
    out = folder() / f"{name}-{steps}"
    quantail.train(f"Quantail/{name}-v0", agent="qr-dqn", steps=steps, out=out, threads=1)
    return out
