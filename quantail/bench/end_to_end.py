"""Benchmark the frames per second of whole runs, with the time of the updates alone as bound."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from quantail.bench.measure import Row, race
from quantail.recipes import configure
from quantail.training.train import prepare
from quantail.training.trainer import Trainer

START = 600  # steps before the first update


def rows(seconds: float) -> Iterator[Row]:
    """Yield rows for Atari with 64/64/32 and 8/8/32 samples, one and eight environments; and MinAtar."""
    few = {"online_samples": 8, "target_samples": 8}
    for name, changes in (("64/64/32", {}), ("8/8/32", few)):
        for envs in (1, 8):
            count = "1 environment" if envs == 1 else f"{envs} environments"
            yield _row(
                "ALE/Breakout-v5", f"iqn atari {name}, {count}", seconds, num_envs=envs, **changes
            )
    yield _row("MinAtar/Breakout-v1", "iqn minatar, default run", seconds)


def _row(env: str, setting: str, seconds: float, **changes: Any) -> Row:
    """Time the steps of a run in its typical state: learning, with little exploration.

    The threads are those of the bench, whatever the preset of the environment has.
    """
    with tempfile.TemporaryDirectory() as folder:
        chosen = {"learning_starts": START, "epsilon_start": 0.01, "epsilon_end": 0.01} | changes
        chosen["threads"] = torch.get_num_threads()
        trainer = prepare(env, configure(env, **chosen), out=Path(folder) / "run")
        with closing(trainer), trainer.process_settings():
            row = _race(setting, trainer, seconds)
    return row


def _race(setting: str, trainer: Trainer, seconds: float) -> Row:
    s = trainer.config
    trainer.start()
    while trainer.steps < START:
        trainer.step()
    batch = trainer.replay.sample()
    often, envs = s.learner.train_frequency, s.run.num_envs
    every, updates = max(often, envs), max(1, envs // often)

    def steps() -> None:
        for _ in range(every // s.run.num_envs):
            trainer.step()

    def updates_only() -> None:
        for _ in range(updates):
            trainer.learner.update(batch)

    row = race("end-to-end", setting, steps, updates_only, 2 * seconds, scale=updates)
    frames = every / updates * trainer.info.frames_per_step
    return replace(row, more={"frames_per_second": round(1000 * frames / row.median_ms, 1)})
