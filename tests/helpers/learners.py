"""A small learner and random batches for it."""

import numpy as np
import torch

from quantail.batch import Batch
from quantail.learning.learner import Learner
from quantail.risk import Neutral
from quantail.spaces import ObservationSpec
from tests.helpers.configs import build_network, config

SPEC = ObservationSpec.array((3,), "float32", "vector")
SMALL = {"mlp_sizes": (16,), "head_size": 16, "learning_rate": 1e-3}


def learner(risk=None, seed=0, actions=2, **changes):
    settings = config(**(SMALL | changes))
    network = build_network(settings, SPEC, actions, seed)
    taus, noise = np.random.default_rng(seed), np.random.default_rng(seed + 100)
    mine = Learner(network, settings.learner, risk or Neutral(), taus, noise, torch.device("cpu"))
    mine.whole = settings  # all that it was made from, for tests
    return mine


def batch(size=4, seed=0, actions=2, done=0.3):
    g = torch.Generator().manual_seed(seed)
    return Batch(
        observations=torch.randn(size, 3, generator=g),
        actions=torch.randint(actions, (size,), generator=g),
        rewards=torch.randn(size, generator=g),
        discounts=0.9 * (torch.rand(size, generator=g) > done).float(),
        next_observations=torch.randn(size, 3, generator=g),
        weights=torch.ones(size),
        indices=torch.arange(size),
    )


def given(*taus):
    """A sampler that hands out these quantile fractions, one tensor per call."""
    waiting = list(taus)
    return lambda batch, count: waiting.pop(0)
