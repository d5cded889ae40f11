"""The settings of the replay buffer."""

from dataclasses import dataclass

from quantail.parts import Group, Part, part
from quantail.settings import NATURE, OURS, setting


@dataclass(frozen=True)
class ReplayConfig(Group):
    """The sampler and the capacity."""

    sampler: Part = part(
        "sampler", "uniform", "how transitions are sampled from the replay buffer", source=OURS
    )
    buffer_size: int = setting(
        1_000_000,
        "capacity of the replay buffer, over all environments",
        unit="steps",
        source=NATURE,
        least=16,
    )
