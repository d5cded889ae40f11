"""Benchmark one greedy decision for a batch of environments."""

import copy
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor

from quantail.agents.actor import Actor
from quantail.bench import dense
from quantail.bench.measure import Row, race
from quantail.bench.scenes import play
from quantail.envs import make, specs_of
from quantail.envs.vector import LocalEnvs
from quantail.networks import ReturnNetwork, build_network
from quantail.part_config import NoConfig
from quantail.recipes import compose
from quantail.replay import Replay, UniformSampler
from quantail.risk import Neutral
from quantail.taus import midpoint_taus

ENV, STEPS = "ALE/Breakout-v5", 3000


def rows(seconds: float) -> Iterator[Row]:
    """Yield rows for IQN at the paper's size, K = 32, with 1, 8 and 64 environments."""
    config = compose("atari-paper", {})
    env = make(ENV, config.environment)
    observation, actions = specs_of(env)
    network = build_network(config.network, config.head, observation, actions.count)
    store = play(ENV, "atari-paper", STEPS).store(STEPS)
    for count in (1, 8, 64):
        seeds, exploration, taus, noise = (np.random.default_rng(seed) for seed in range(4))
        actor = Actor(
            LocalEnvs([env] * count),
            network,
            Neutral(),
            torch.device("cpu"),
            seeds=seeds,
            exploration=exploration,
            taus=taus,
            noise=noise,
            strategy=config.exploration.strategy.build(),
        )
        sampler = UniformSampler(store, np.random.default_rng(4), NoConfig())
        replay = Replay(store, sampler, count, 1, 0.99)
        batch = replay.sample().observations
        actor.observations[...] = batch.numpy()
        bound = bound_of(actor.network, batch)
        yield race("act", f"iqn atari batch {count}", partial(actor.choose, 0.0), bound, seconds)
    env.close()


def bound_of(network: ReturnNetwork, observations: Tensor) -> dense.Work:
    """Return all products of a decision without noise, none of them skipped, nothing between them."""
    twin = copy.deepcopy(network)
    twin.use_dense_products()
    twin.drop_noise()
    return dense.products_of(partial(_decide, twin, observations))


@torch.no_grad()  # in inference mode, linear layers are not taken apart into products
def _decide(network: ReturnNetwork, observations: Tensor) -> Tensor:
    return network.head.value(network.features(observations), Neutral(), midpoint_taus)
