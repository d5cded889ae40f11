"""Schedules of the learning rate: the factor by which it is multiplied as a run proceeds."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from quantail.part_config import NoConfig
from quantail.parts import Group
from quantail.settings import OURS, setting


class Schedule:
    """The factor of the learning rate as a function of progress. It has no state."""

    Config: ClassVar[type] = NoConfig  # a frozen dataclass: the schedule's own settings
    varies: ClassVar[bool] = True  # False: the factor is always 1 and the rate is never set

    def __init__(self, config: Any = None) -> None:
        self.config = self.Config() if config is None else config

    def factor(self, progress: float) -> float:
        """Return the factor at this fraction of the run, from 0 at its first step to 1 at its last."""
        raise NotImplementedError


class Constant(Schedule):
    """The learning rate of the settings throughout the run."""

    varies = False

    def factor(self, progress: float) -> float:
        return 1.0


@dataclass(frozen=True)
class DecayConfig(Group):
    """Where the decay ends."""

    final_rate: float = setting(
        0.0,
        "fraction of the learning rate that is left at the end of the run",
        source=OURS,
        least=0,
        most=1,
    )


class Linear(Schedule):
    """Decay linearly to the fraction `final_rate` of the learning rate."""

    Config = DecayConfig

    def factor(self, progress: float) -> float:
        final: float = self.config.final_rate
        return (1.0 - progress) + final * progress


class Cosine(Schedule):
    """Decay along half a cosine to the fraction `final_rate` (Loshchilov and Hutter 2017)."""

    Config = DecayConfig

    def factor(self, progress: float) -> float:
        final: float = self.config.final_rate
        return final + (1.0 - final) * (1.0 + math.cos(math.pi * progress)) / 2.0


SCHEDULES: dict[str, type[Schedule]] = {"constant": Constant, "linear": Linear, "cosine": Cosine}
