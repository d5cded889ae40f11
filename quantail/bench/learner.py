"""Benchmark one full update on real frames, without sampling the batch."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from quantail.batch import Batch
from quantail.bench import dense
from quantail.bench.measure import Row, race
from quantail.bench.scenes import play
from quantail.config import Config
from quantail.learning.learner import Learner
from quantail.networks import build_network
from quantail.part_config import NoConfig
from quantail.recipes import compose
from quantail.replay import Replay, UniformSampler
from quantail.risk import Neutral

STEPS = 3000
ATARI = ("ALE/Breakout-v5", "atari-paper", "atari")
FAST = ("ALE/Breakout-v5", "atari-fast", "atari-fast 24/24/8")
MINATAR = ("MinAtar/Breakout-v1", "minatar", "minatar")
SAMPLES = ("online_samples", "target_samples", "policy_samples")


def rows(seconds: float) -> Iterator[Row]:
    """Yield rows for IQN with common numbers of samples N/N'/K, then for other agents."""
    for samples in ((64, 64, 32), (8, 8, 32), (8, 8, 8)):
        yield _row(*ATARI, "iqn", seconds, samples)
        yield _row(*ATARI, "iqn", seconds, samples, without_zeros=True)
    yield _row(*FAST, "iqn", seconds)
    for samples in ((32, 32, 32), (8, 8, 8)):
        yield _row(*MINATAR, "iqn", seconds, samples)
    for agent in ("qr-dqn", "c51", "rainbow", "rainbow-iqn"):
        yield _row(*ATARI, agent, seconds)


def build(config: Config, env: str, preset: str) -> tuple[Learner, Replay]:
    """Return a learner with new weights, and a replay of real frames."""
    scenes = play(env, preset, STEPS)
    network = build_network(config.network, config.head, scenes.observation, scenes.actions.count)
    taus, noise, sampling = (np.random.default_rng(seed) for seed in range(3))
    learner = Learner(network, config.learner, Neutral(), taus, noise, torch.device("cpu"))
    store = scenes.store(STEPS)
    sampler = UniformSampler(store, sampling, NoConfig())
    replay = Replay(
        store, sampler, learner.config.batch_size, learner.config.n_step, learner.config.discount
    )
    return learner, replay


def bound_of(learner: Learner, batch: Batch) -> dense.Work:
    """Return all products of an update, none of them skipped, with nothing between them."""
    twin = copy.deepcopy(learner)
    for network in (twin.online, twin.target):
        network.use_dense_products()
    return dense.products_of(lambda: twin.update(batch))


def _row(
    env: str,
    preset: str,
    shape: str,
    agent: str,
    seconds: float,
    samples: tuple[int, ...] = (),
    without_zeros: bool = False,
) -> Row:
    changes: dict[str, Any] = {"agent": agent} | dict(zip(SAMPLES, samples, strict=False))
    learner, replay = build(compose(preset, changes), env, preset)
    words = [agent, shape, "/".join(map(str, samples))]
    if without_zeros:
        words.append("without zeros")
        for network in (learner.online, learner.target):
            network.torso.register_forward_hook(lambda torso, inputs, features: F.softplus(features))
    batch = replay.sample()
    bound = bound_of(learner, batch)
    with torch.no_grad():
        features = learner.online.features(batch.observations)
    zeros = float((features == 0).all(dim=0).float().mean())
    setting = " ".join(filter(None, words))
    return race("learner", setting, lambda: learner.update(batch), bound, seconds, zeros=round(zeros, 3))
