"""Frames a second of a whole run, beside the time of its updates alone."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quantail.bench.measure import Row, race
from quantail.training.train import prepare

START = 600  # steps before learning begins


def rows(seconds: float) -> Iterator[Row]:
    """Atari at the paper's settings and with fewer levels, with one environment and eight; MinAtar."""
    few = {"online_samples": 8, "target_samples": 8}
    for name, changes in (("64/64/32", {}), ("8/8/32", few)):
        for envs in (1, 8):
            count = "1 environment" if envs == 1 else f"{envs} environments"
            yield _row("ALE/Breakout-v5", f"iqn atari {name}, {count}", seconds, envs=envs, **changes)
    yield _row("MinAtar/Breakout-v1", "iqn minatar, default run", seconds)


def _row(env: str, setting: str, seconds: float, **changes: Any) -> Row:
    """Steps of a run in the state in which it spends its time: learning, and hardly exploring."""
    with tempfile.TemporaryDirectory() as folder:
        chosen = {"learn_start": START, "epsilon_start": 0.01, "epsilon_end": 0.01} | changes
        trainer = prepare(env, out=Path(folder) / "run", **chosen)
        trainer.actor.start()
        while trainer.steps < START:
            trainer.step()
        every = max(trainer.settings.update_every, trainer.settings.envs)
        updates = max(1, trainer.settings.envs // trainer.settings.update_every)

        def steps() -> None:
            for _ in range(every // trainer.settings.envs):
                trainer.step()

        def learning() -> None:
            for _ in range(updates):
                trainer.learner.update(batch)

        batch = trainer.replay.sample()
        row = race("end-to-end", setting, steps, learning, 2 * seconds, scale=updates)
        trainer.close()
    frames = every / updates * trainer.settings.action_repeat
    return Row(**{**vars(row), "more": {"frames_per_second": round(1000 * frames / row.median_ms, 1)}})
