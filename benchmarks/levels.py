"""Measure how much the gradient of an update varies with the sampled fractions τ, and what it costs.

    python benchmarks/levels.py RUN [draws]

RUN is a trained IQN run; the benchmark works on a copy. Batches come from its replay, the networks from
its last checkpoint. For each number of fractions N/N'/K and each sampling scheme, it prints the variance
of the gradient over samples of τ divided by the square of its mean, and the time of the gradient,
measured in alternation with the others. The loss sums over N, which cancels in the ratio.
"""

import argparse
import itertools
import shutil
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch

from quantail.batch import Batch
from quantail.learning.learner import Learner
from quantail.risk import parse_risk
from quantail.settings import Settings
from quantail.training.checkpoints import Checkpoints
from quantail.training.reporter import Reporter
from quantail.training.run_folder import RunFolder
from quantail.training.train import pick_device
from quantail.training.trainer import Trainer

COUNTS = (
    (64, 64, 32),
    (32, 32, 32),
    (24, 24, 8),
    (16, 32, 8),
    (32, 16, 8),
    (16, 16, 16),
    (16, 16, 8),
    (8, 8, 32),
    (8, 8, 8),
)
SCHEMES = ("independent", "antithetic", "shared", "stratified")
BATCHES = 3


def restore(path: str) -> Trainer:
    """Restore a run from its last checkpoint."""
    folder = RunFolder(path)
    info = folder.read()
    trainer = Trainer(
        folder, info, info.env, parse_risk(info.settings.risk), pick_device("cpu"), Reporter()
    )
    trainer.restore(Checkpoints(folder.checkpoints).read("last"))
    return trainer


def gradient(learner: Learner, batch: Batch) -> torch.Tensor:
    loss = learner.compute_loss(batch).losses.mean()
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, learner.parameters)])


def relative_variance(learner: Learner, batch: Batch, draws: int) -> float:
    """Return Σ Var(g_i) / |E g|², both estimated without bias."""
    total, squares = torch.zeros(()), 0.0
    for _ in range(draws):
        sample = gradient(learner, batch)
        total = total + sample
        squares += float(sample @ sample)
    mean = total / draws
    variance = (squares - draws * float(mean @ mean)) / (draws - 1)
    return variance / (float(mean @ mean) - variance / draws)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", help="folder of the run")
    parser.add_argument(
        "draws", nargs="?", type=int, default=64, help="samples of τ for each batch [64]"
    )
    arguments = parser.parse_args()
    if not (Path(arguments.run) / "run.json").is_file() or arguments.draws < 2:
        parser.error("RUN must be the folder of a run, and draws at least 2")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(arguments.run, folder, dirs_exist_ok=True)
        measure(restore(folder), arguments.draws)


def measure(trainer: Trainer, draws: int) -> None:
    learner = trainer.learner
    batches = [trainer.replay.sample() for _ in range(BATCHES)]
    base = learner.settings
    times: dict[tuple[int, ...], list[float]] = {counts: [] for counts in COUNTS}
    for _, counts in itertools.product(range(12), COUNTS):
        learner.settings = _with(base, counts, "independent")
        begin = time.perf_counter()
        gradient(learner, batches[0])
        times[counts].append(1000 * (time.perf_counter() - begin))
    print(
        f"{trainer.info.env}, {trainer.steps:,} training steps, {draws} samples of τ, {BATCHES} batches"
    )
    print("N/N'/K".ljust(12), "ms".rjust(8), *(scheme.rjust(12) for scheme in SCHEMES))
    for counts in COUNTS:
        cells = []
        for scheme in SCHEMES:
            learner.settings = _with(base, counts, scheme)
            found = [relative_variance(learner, batch, draws) for batch in batches]
            cells.append(f"{statistics.mean(found):.4f}".rjust(12))
        name = "/".join(map(str, counts))
        print(name.ljust(12), f"{statistics.median(times[counts][2:]):8.2f}", *cells, flush=True)


def _with(settings: Settings, counts: tuple[int, ...], scheme: str) -> Settings:
    online, target, policy = counts
    return replace(
        settings,
        online_samples=online,
        target_samples=target,
        policy_samples=policy,
        tau_sampling=scheme,
    )


if __name__ == "__main__":
    main()
