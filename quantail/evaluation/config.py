"""The settings of evaluation during training."""

from dataclasses import dataclass

from quantail.parts import Group
from quantail.settings import OURS, PAPER, QR, setting


@dataclass(frozen=True)
class EvaluationConfig(Group):
    """When the agent is evaluated, on how much, and with which probability of random actions."""

    evaluation_every: int = setting(
        250_000, "number of steps between two evaluations", unit="steps", source=PAPER, least=1
    )
    evaluation_episodes: int = setting(
        30,
        "number of episodes per evaluation, if evaluation_steps is 0",
        unit="episodes",
        source=OURS,
        least=1,
    )
    evaluation_steps: int = setting(
        0,
        "evaluate on as many whole episodes as fit in this many steps; 0 uses evaluation_episodes",
        unit="steps",
        source=OURS,
        least=0,
    )
    evaluation_epsilon: float = setting(
        0.001, "probability of a random action during evaluation", source=QR, least=0, most=1
    )
