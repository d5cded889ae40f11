"""The samplers by name, and how the settings build one."""

from dataclasses import fields

import numpy as np

from quantail.replay.prioritized import PrioritizedSampler
from quantail.replay.sampler import Sampler
from quantail.replay.store import ReplayStore
from quantail.replay.uniform import UniformSampler
from quantail.settings import Settings

SAMPLERS: dict[str, type[Sampler]] = {"uniform": UniformSampler, "prioritized": PrioritizedSampler}


def sampler_class(settings: Settings) -> type[Sampler]:
    """Return the class of the sampler that the settings name."""
    return SAMPLERS[settings.replay]


def build_sampler(settings: Settings, store: ReplayStore, generator: np.random.Generator) -> Sampler:
    """Build the sampler that the settings name."""
    kind = sampler_class(settings)
    config = kind.Config(**{one.name: getattr(settings, one.name) for one in fields(kind.Config)})
    return kind(store, generator, config)
