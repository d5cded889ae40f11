"""The samplers by name, and how the settings build one."""

import numpy as np

from quantail.parts import config_of, part_of
from quantail.replay.prioritized import PrioritizedSampler
from quantail.replay.sampler import Sampler
from quantail.replay.store import ReplayStore
from quantail.replay.uniform import UniformSampler
from quantail.settings import Settings

SAMPLERS: dict[str, type[Sampler]] = {"uniform": UniformSampler, "prioritized": PrioritizedSampler}


def sampler_class(settings: Settings) -> type[Sampler]:
    """Return the class of the sampler that the settings name."""
    sampler: type[Sampler] = part_of("sampler", settings)
    return sampler


def build_sampler(settings: Settings, store: ReplayStore, generator: np.random.Generator) -> Sampler:
    """Build the sampler that the settings name."""
    return sampler_class(settings)(store, generator, config_of("sampler", settings))
