"""The samplers by name."""

from quantail.replay.prioritized import PrioritizedSampler
from quantail.replay.sampler import Sampler
from quantail.replay.uniform import UniformSampler

SAMPLERS: dict[str, type[Sampler]] = {"uniform": UniformSampler, "prioritized": PrioritizedSampler}
