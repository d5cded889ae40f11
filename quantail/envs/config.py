"""The settings of environments, besides those that one family alone has."""

from dataclasses import dataclass

from quantail.parts import Group, Part, part
from quantail.settings import OURS, setting


@dataclass(frozen=True)
class EnvironmentConfig(Group):
    """The family of the environment, and the preprocessing that all families share."""

    family: Part = part("family", "gymnasium", "family of the environment, which its id decides")
    stack: int = setting(
        1,
        "number of most recent observations that are stacked",
        unit="observations",
        source=OURS,
        least=1,
    )
    max_episode_steps: int = setting(
        0,
        "truncate episodes after this many steps; 0 keeps the environment's own limit",
        unit="steps",
        source=OURS,
        least=0,
    )
    clip_rewards: float = setting(
        0.0,
        "clip rewards to [−c, c] for learning; reported returns are not clipped; 0 disables clipping",
        source=OURS,
        least=0,
    )
