"""Benchmark one greedy decision for a batch of environments."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

from quantail.agents.actor import Actor
from quantail.bench import dense
from quantail.bench.measure import Row, race
from quantail.bench.scenes import play
from quantail.envs import make, specs_of
from quantail.networks import build_network
from quantail.recipes import compose
from quantail.replay import Replay, UniformSampler
from quantail.risk import Neutral

ENV, STEPS = "ALE/Breakout-v5", 3000


def rows(seconds: float) -> Iterator[Row]:
    """Yield rows for IQN at the paper's size, K = 32, with 1, 8 and 64 environments."""
    settings = compose("atari-paper", {})
    env = make(ENV, settings)
    observation, actions = specs_of(env)
    network = build_network(settings, observation, actions.count)
    store = play(ENV, "atari-paper", STEPS).store(STEPS)
    for count in (1, 8, 64):
        seeds, exploration, taus, noise = (np.random.default_rng(seed) for seed in range(4))
        actor = Actor(
            [env] * count,
            network,
            Neutral(),
            settings.policy_samples,
            torch.device("cpu"),
            seeds=seeds,
            exploration=exploration,
            taus=taus,
            noise=noise,
        )
        replay = Replay(store, UniformSampler(store, np.random.default_rng(4)), count, 1, 0.99)
        actor.observations.copy_(replay.sample().observations)
        bound = dense.forward_pass(network, actor.observations, settings.policy_samples)
        yield race("act", f"iqn atari batch {count}", partial(actor.choose, 0.0), bound, seconds)
    env.close()
