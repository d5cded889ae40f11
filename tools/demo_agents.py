"""Train the agents of `quantail demo` again, and write them into the package.

    make demo-agents                              # train both
    python -m tools.demo_agents cliff             # train one of them
    python -m tools.demo_agents --keep-weights    # write the settings again, and keep the weights

The weights are rounded to 16 bits. Use --keep-weights when Quantail has got a new setting, and train
when a network or the file format has changed.
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import quantail
from quantail.agents.agent import Agent
from quantail.demo import folder
from quantail.envs import specs_of
from quantail.networks import build_network
from quantail.risk import parse_risk
from quantail.runs.checkpoints import AGENT, Checkpoints
from quantail.runs.saved import weights_of


@dataclass(frozen=True)
class Training:
    """How an agent is trained, and which of its checkpoints are shipped, oldest first."""

    env: str
    settings: Mapping[str, Any]
    checkpoints: tuple[int, ...]


TRAININGS = {
    "cliff": Training(
        "Quantail/WindyCliff-v0",
        {"agent": "iqn", "seed": 1, "steps": 60_000, "checkpoint_every": 4_000},
        (4_000, 8_000, 12_000, 20_000, 32_000, 60_000),
    ),
    "breakout": Training(
        "MinAtar/Breakout-v1",
        {"agent": "iqn", "seed": 1, "steps": 300_000, "schedule": "linear"},
        (300_000,),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.demo_agents",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=" or ".join(TRAININGS))
    parser.add_argument("--keep-weights", action="store_true", help="do not train")
    parser.add_argument("--run", type=Path, help="a finished run of one agent, instead of training it")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in TRAININGS]:
        parser.error(f"there is no agent {unknown[0]!r}: use {' or '.join(TRAININGS)}")
    for name in asked.names or TRAININGS:
        training = TRAININGS[name]
        with tempfile.TemporaryDirectory(prefix="quantail-demo-") as temporary:
            new = Path(temporary) / "agent"
            if asked.keep_weights:
                ship(kept(name, training), new)
            else:
                run = asked.run or Path(temporary) / "run"
                if asked.run is None:
                    quantail.train(
                        training.env,
                        out=run,
                        keep_checkpoints="all",
                        callbacks=[quantail.ProgressBar()],
                        **training.settings,
                    )
                ship((quantail.load(run, str(steps)) for steps in training.checkpoints), new)
            shutil.rmtree(folder(name), ignore_errors=True)
            shutil.copytree(new, folder(name))
        size = sum(path.stat().st_size for path in folder(name).rglob("*") if path.is_file())
        print(f"{name}: {size / 1000:.0f} kB", flush=True)


def kept(name: str, training: Training) -> Iterable[Agent]:
    """Yield the shipped agents with the settings of the present code, oldest first."""
    config = quantail.configure(training.env, **training.settings)
    observation, actions = specs_of(quantail.make(training.env, config))
    checkpoints = Checkpoints(folder(name) / "checkpoints")
    for one in checkpoints.names():
        weights = checkpoints.read(str(int(one))).state_of(AGENT)
        network = build_network(config.network, config.head, observation, actions.count)
        network.load_state_dict({key: torch.from_numpy(value) for key, value in weights.items()})
        risk = parse_risk(config.risk.played)
        yield Agent(network, config, observation, actions, training.env, risk, int(one))


def ship(agents: Iterable[Agent], new: Path) -> None:
    """Write checkpoints of one agent, oldest first, to a new folder."""
    for agent in agents:
        if new.exists():
            weights = weights_of(agent, half=True)
            Checkpoints(new / "checkpoints").save(agent.checkpoint, {AGENT: weights})
        else:
            agent.save(new, half=True)


if __name__ == "__main__":
    main()
