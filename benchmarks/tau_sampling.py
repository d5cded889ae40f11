"""Measure how much the gradient of an update varies with the sampled fractions τ, and what it costs.

    python benchmarks/tau_sampling.py RUN [draws]

RUN is a trained IQN run; the benchmark works on a copy. Batches come from its replay, the networks from
its last checkpoint. For each number of fractions N/N'/K and each sampling scheme, it prints the variance
of the gradient over samples of τ divided by the square of its mean, and the time of the gradient,
measured in alternation with the others. The loss sums over N, which cancels in the ratio.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from quantail.batch import Batch
from quantail.learning.learner import Learner
from quantail.networks import build_network
from quantail.risk import parse_risk
from quantail.runs.checkpoints import Checkpoints
from quantail.runs.folder import RunFolder
from quantail.training.build import build_parts
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
TIMED, WARM_UP = 12, 2  # gradients that are timed, and how many of them do not count


def restore(path: str) -> Trainer:
    """Restore a run from its last checkpoint."""
    folder = RunFolder(path)
    info = folder.read()
    risks = info.config.risk.measures(parse_risk(info.config.risk.risk))
    trainer = Trainer(build_parts(folder, info, info.env, risks, pick_device("cpu")))
    trainer.restore(Checkpoints(folder.checkpoints).read("last"))
    return trainer


def learner_with(trainer: Trainer, counts: Sequence[int], scheme: str) -> Learner:
    """Return a learner with the networks of the run, but its own number and sampling of τ."""
    online, target, policy = counts
    config = trainer.info.config.replace(
        online_samples=online,
        target_samples=target,
        policy_samples=policy,
        tau_sampling=scheme,
    )
    learner = Learner(
        build_network(config.network, config.head, trainer.info.observation, trainer.info.actions.count),
        config.learner,
        trainer.learner.risk,
        taus=np.random.default_rng(0),
        noise=np.random.default_rng(1),
        device=trainer.learner.device,
    )
    learner.online.load_state_dict(trainer.learner.online.state_dict())
    learner.target.load_state_dict(trainer.learner.target.state_dict())
    return learner


def gradient(learner: Learner, batch: Batch) -> torch.Tensor:
    """Return the gradient of the mean loss on fresh samples of τ."""
    loss = learner.losses(batch, learner.targets(batch)).losses.mean()
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, learner.main.parameters)])


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


def milliseconds(trainer: Trainer, batch: Batch) -> dict[Sequence[int], float]:
    """Return the median time of a gradient for each number of fractions, measured in alternation."""
    learners = {counts: learner_with(trainer, counts, "independent") for counts in COUNTS}
    times: dict[Sequence[int], list[float]] = {counts: [] for counts in COUNTS}
    for _ in range(TIMED):
        for counts, learner in learners.items():
            start = time.perf_counter()
            gradient(learner, batch)
            times[counts].append(1000 * (time.perf_counter() - start))
    return {counts: statistics.median(found[WARM_UP:]) for counts, found in times.items()}


def measure(trainer: Trainer, draws: int) -> None:
    """Print the table."""
    batches = [trainer.replay.sample() for _ in range(BATCHES)]
    cost = milliseconds(trainer, batches[0])
    print(
        f"{trainer.info.env}, {trainer.steps:,} training steps, {draws} samples of τ, {BATCHES} batches"
    )
    print("N/N'/K".ljust(12), "ms".rjust(8), *(scheme.rjust(12) for scheme in SCHEMES))
    for counts in COUNTS:
        cells = []
        for scheme in SCHEMES:
            learner = learner_with(trainer, counts, scheme)
            found = [relative_variance(learner, batch, draws) for batch in batches]
            cells.append(f"{statistics.mean(found):.4f}".rjust(12))
        name = "/".join(map(str, counts))
        print(name.ljust(12), f"{cost[counts]:8.2f}", *cells, flush=True)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", help="folder of the run")
    parser.add_argument(
        "draws", nargs="?", type=int, default=64, help="samples of τ for each batch [64]"
    )
    arguments = parser.parse_args(words)
    if not (Path(arguments.run) / "run.json").is_file() or arguments.draws < 2:
        parser.error("RUN must be the folder of a run, and draws at least 2")
    if not RunFolder(arguments.run).read().config.is_active("online_samples"):
        parser.error("RUN must be a run of an agent that samples τ, such as iqn")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(arguments.run, folder, dirs_exist_ok=True)
        measure(restore(folder), arguments.draws)


if __name__ == "__main__":
    main()
