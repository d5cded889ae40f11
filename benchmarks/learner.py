"""One full IQN update at the paper's size, beside its own matrix products done bare.

    python benchmarks/learner.py [repeats]

Both are timed in turn, because a machine's speed drifts within minutes.
"""

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from quantail.envs import make, specs_of
from quantail.learning.batch import Batch
from quantail.learning.learner import Learner
from quantail.networks import build_network
from quantail.recipes import compose
from quantail.risk import Neutral
from quantail.training.allocator import keep_large_blocks


def real_batch(size: int) -> Batch:
    """Frames of a random game of Breakout."""
    env = make("ALE/Breakout-v5")
    actions = torch.from_numpy(np.random.default_rng(0).integers(4, size=size))
    observations = [env.reset(seed=0)[0]]
    observations += [env.step(int(action))[0] for action in actions]
    frames = torch.from_numpy(np.stack(observations))
    return Batch(
        frames[:-1], actions, torch.zeros(size), torch.full((size,), 0.99), frames[1:], torch.ones(size)
    )


def bare_products(batch: int, n: int, n_target: int, k: int) -> Callable[[], None]:
    """The dense products of the head, forward and backward, with nothing between them."""
    rows, target_rows, features, hidden, cosines = batch * n, batch * (n_target + k), 3136, 512, 64
    weight, phi = torch.randn(features, hidden), torch.randn(cosines, features)
    target_merged, merged = torch.randn(target_rows, features), torch.randn(rows, features)
    target_cosines, online_cosines = torch.randn(target_rows, cosines), torch.randn(rows, cosines)
    gradient = torch.randn(rows, hidden)

    def run() -> None:
        target_cosines @ phi
        target_merged @ weight
        online_cosines @ phi
        merged @ weight
        merged.T @ gradient
        gradient @ weight.T
        online_cosines.T @ merged

    return run


def milliseconds(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begin)


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    keep_large_blocks()
    settings = compose("atari-paper", {})
    observation, actions = specs_of(make("ALE/Breakout-v5"))
    network = build_network(settings, observation, actions.count)
    learner = Learner(
        network,
        settings,
        Neutral(),
        np.random.default_rng(0),
        np.random.default_rng(1),
        torch.device("cpu"),
    )
    batch = real_batch(settings.batch_size)
    s = settings
    bare = bare_products(s.batch_size, s.online_samples, s.target_samples, s.policy_samples)

    def update() -> None:
        learner.update(batch)

    pairs = [(milliseconds(update), milliseconds(bare)) for _ in range(repeats + 3)][3:]
    ours, bound = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(
        f"update {ours:.0f} ms ({1000 / ours:.2f} a second), bare products {bound:.0f} ms, "
        f"ratio {bound / ours:.2f}, {torch.get_num_threads()} threads"
    )


if __name__ == "__main__":
    main()
