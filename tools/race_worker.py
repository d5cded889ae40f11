"""One side of a race: train with whatever version of Quantail PYTHONPATH names, a turn at a time.

`tools/race.py` starts this script and talks to it in lines of JSON: first the job, then the number of
cycles of each turn. It waits in between. It uses only functions that every version since OLDEST has.
"""

import json
import math
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

OLDEST = "c39b958"
START = 2_000  # steps before the first update, which fill the replay buffer
WARM_UP = 12  # cycles before the first turn; where kernels are compiled, this compiles them
TIMED = 5  # of these, the last ones, from which the length of a turn follows


class RefusedError(Exception):
    """A problem that is answered with its sentence."""


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a package prints is no answer
    # An editable installation would complete an older version with modules that it does not have.
    sys.meta_path[:] = [one for one in sys.meta_path if "__editable___quantail" not in one.__module__]
    job = json.loads(sys.stdin.readline())
    try:
        for answer in turns(job):
            print(json.dumps(answer), file=answers, flush=True)
    except RefusedError as refused:
        print(json.dumps({"error": str(refused)}), file=answers, flush=True)


def turns(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the description of the job, and then the times of every turn that is asked for."""
    trainer, folder = prepared(job)
    with folder, trainer.process_settings():
        trainer.start()
        settings = trainer.config.to_dict()
        while trainer.steps < settings["learning_starts"]:
            trainer.step()
        every, envs = settings["train_frequency"], settings["num_envs"]
        steps = math.lcm(every, envs)
        calls, updates = steps // envs, steps // every
        times = [run_cycles(trainer, calls, 1)["wall"] for _ in range(WARM_UP)]
        yield {
            "env": trainer.info.env,
            "steps": steps / updates,
            "frames": steps / updates * trainer.info.frames_per_step,
            "updates": updates,
            "seconds": sorted(times[-TIMED:])[TIMED // 2],
            "zeros": zeros(trainer),
        }
        while line := sys.stdin.readline():
            asked = json.loads(line)
            if "cycles" not in asked:
                break
            yield run_cycles(trainer, calls, asked["cycles"])
        yield {"zeros": zeros(trainer)}
        trainer.close()


class Phases:
    """Takes the place of the clock of a run, to measure the CPU time of its phases."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begin = time.thread_time()
        yield
        self.seconds[name] += time.thread_time() - begin


def run_cycles(trainer: Any, calls: int, cycles: int) -> dict[str, float]:
    """Return the seconds of a number of cycles: on the clock, of this thread, and in each phase."""
    phases = Phases()
    trainer.clock.phase = phases.phase
    cpu, wall = time.thread_time(), time.perf_counter()
    for _ in range(cycles * calls):
        trainer.step()
    wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    return {"wall": wall, "cpu": cpu} | phases.seconds


def prepared(job: dict[str, Any]) -> tuple[Any, tempfile.TemporaryDirectory]:
    """Return the trainer of a new run, with the weights of the checkpoint if there is one."""
    try:
        import quantail
        from quantail.config import Config, is_setting
        from quantail.errors import QuantailError
        from quantail.recipes import configure
        from quantail.training.allocator import keep_large_blocks
        from quantail.training.train import prepare
    except ImportError as error:
        raise RefusedError(
            f"is too old to be raced ({error}): commits since {OLDEST} can be."
        ) from error
    if not Path(quantail.__file__).is_relative_to(job["folder"]):
        raise RefusedError(f"is not what Python imports, which is {quantail.__file__}.")
    keep_large_blocks()
    env, folder = job["env"], tempfile.TemporaryDirectory()
    try:
        if job["settings"]:  # those of a run, which another version may have written
            config = Config.from_dict({k: v for k, v in job["settings"].items() if is_setting(k)})
            # Its own play fills the replay buffer.
            fill = {"epsilon_start": config.exploration.epsilon_end}
        else:
            config = configure(env, agent=job["agent"], preset=job["preset"])
            fill = {}  # random play does
        run = {"steps": max(config.run.steps, 2 * START), "seed": 0, "threads": 1, "device": "cpu"}
        run |= {"engine": "local", "tensorboard": False, "wandb": ""}
        config = config.replace(**run, **fill, learning_starts=START, epsilon_steps=1)
        config = config.replace(**job["changes"])
        trainer = prepare(env, config, out=Path(folder.name) / "run")
        if job["weights"]:
            load_weights(trainer, job["weights"])
    except QuantailError as error:
        raise RefusedError(f"refuses: {error}") from error
    except (AttributeError, TypeError) as error:
        raise RefusedError(
            f"is too old to be raced ({error}): commits since {OLDEST} can be."
        ) from error
    return trainer, folder


def load_weights(trainer: Any, path: str) -> None:
    """Copy the weights of a checkpoint into both networks, as a resumed run does."""
    from safetensors.torch import load_file

    try:
        trainer.learner.online.load_state_dict(load_file(path))
    except RuntimeError as error:
        raise RefusedError(f"has a network that the weights in {path} do not fit.") from error
    trainer.learner.sync_target()


def zeros(trainer: Any) -> float:
    """Return the share of the features of a state that are zero, over a batch."""
    import torch

    with torch.no_grad():
        features = trainer.learner.online.features(trainer.replay.sample().observations)
    return float((features == 0).float().mean())


if __name__ == "__main__":
    main()
