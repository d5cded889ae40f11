"""The settings of exploration."""

from dataclasses import dataclass

from quantail.parts import Group, Part, part
from quantail.settings import APEX, NATURE, QR, setting

LOCAL, RAY = ("engine", "local"), ("engine", "ray")


@dataclass(frozen=True)
class ExplorationConfig(Group):
    """How the behaviour policy departs from the greedy one, and the schedule of ε."""

    strategy: Part = part(
        "exploration",
        "epsilon-greedy",
        "how the behaviour policy departs from the greedy one",
        source=NATURE,
    )
    epsilon_start: float = setting(
        1.0, "initial probability of a random action", source=NATURE, least=0, most=1, only=LOCAL
    )
    epsilon_end: float = setting(
        0.01, "final probability of a random action", source=QR, least=0, most=1, only=LOCAL
    )
    epsilon_steps: int = setting(
        1_000_000,
        "number of steps over which the probability decreases to epsilon_end, after learning_starts",
        unit="steps",
        source=QR,
        least=0,
        only=LOCAL,
    )
    actor_epsilon: float = setting(
        0.4,
        "probability of a random action of the actor that explores most, once learning has started",
        source=APEX,
        least=0,
        most=1,
        only=RAY,
    )
    actor_epsilon_power: float = setting(
        7.0,
        "how much less the other actors explore: actor i uses actor_epsilon^(1 + power i/(actors − 1))",
        source=APEX,
        least=0,
        only=RAY,
    )
