"""The values that change with the steps of a run: ε, β, the risk measures and the learning rate."""

from quantail.agents.schedules import linear
from quantail.learning.schedules import Schedule
from quantail.settings import Settings
from quantail.training.risk_config import RiskConfig


class Schedules:
    """The schedules of a run, each a function of the number of steps alone."""

    def __init__(self, settings: Settings, risk_config: RiskConfig, learning_rate: Schedule) -> None:
        self.settings, self.risk_config, self.rate = settings, risk_config, learning_rate

    def epsilon(self, steps: int) -> float:
        s = self.settings
        return linear(steps, s.epsilon_start, s.epsilon_end, s.learning_starts, s.epsilon_steps)

    def importance(self, steps: int) -> float:
        """Return β, the exponent of the importance weights of prioritized replay."""
        return linear(steps, self.settings.importance_start, 1.0, 0, self.settings.importance_steps)

    def risk(self, steps: int) -> RiskConfig | None:
        """Return the annealed risk measures, or None if they never change."""
        s = self.settings
        if not s.risk_anneal_steps:
            return None
        return self.risk_config.at(linear(steps, 0.0, 1.0, s.learning_starts, s.risk_anneal_steps))

    def learning_rate(self, steps: int) -> float | None:
        """Return the learning rate, or None if it never changes.

        The schedule runs from step 0 to the present length of the run. If you lengthen a run, it follows
        the schedule of its new length from then on, so the rate may rise where it continues.
        """
        if not self.rate.varies:
            return None
        progress = min(1.0, steps / self.settings.steps)
        return self.settings.learning_rate * self.rate.factor(progress)
