"""The values that change with the steps of a run: ε, β, the risk measures and the learning rate."""

from quantail.config import Config
from quantail.errors import QuantailError, reason_of
from quantail.learning.schedules import Schedule
from quantail.risk.config import RiskMeasures
from quantail.schedules import linear
from quantail.validation import number


class Schedules:
    """The schedules of a run, each a function of the number of steps alone."""

    def __init__(self, config: Config, risks: RiskMeasures, learning_rate: Schedule) -> None:
        self.config, self.risks, self.rate = config, risks, learning_rate
        for progress in (0.0, 1.0) if learning_rate.varies else ():
            self._factor(progress)  # a schedule from outside that fails does so before the run starts

    def epsilon(self, steps: int) -> float:
        s = self.config
        return linear(
            steps,
            s.exploration.epsilon_start,
            s.exploration.epsilon_end,
            s.learner.learning_starts,
            s.exploration.epsilon_steps,
        )

    def risk(self, steps: int) -> RiskMeasures | None:
        """Return the annealed risk measures, or None if they never change."""
        s = self.config
        if not s.risk.risk_anneal_steps:
            return None
        return self.risks.at(
            linear(steps, 0.0, 1.0, s.learner.learning_starts, s.risk.risk_anneal_steps)
        )

    def learning_rate(self, steps: int) -> float | None:
        """Return the learning rate, or None if it never changes.

        The schedule runs from step 0 to the present length of the run. If you lengthen a run, it follows
        the schedule of its new length from then on, so the rate may rise where it continues.
        """
        if not self.rate.varies:
            return None
        progress = min(1.0, steps / self.config.run.steps)
        return self.config.learner.learning_rate * self._factor(progress)

    def _factor(self, progress: float) -> float:
        """Return the factor of the learning rate; raise an error that names the schedule if it fails."""
        name = f"schedule {self.config.learner.schedule.label}"
        try:
            factor = self.rate.factor(progress)
        except Exception as error:
            raise QuantailError(
                f"{name} fails to give a factor at progress {progress:g} ({reason_of(error)})."
            ) from error
        return number(f"{name}: its factor at progress {progress:g}", factor, least=0)
