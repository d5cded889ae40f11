"""What the policies of a run scored."""

import math
from dataclasses import dataclass, field

from quantail.evaluation import Evaluation


@dataclass
class Scores:
    """The "random", the "final" and the "best" policy: mean return, and value under the run's risk."""

    means: dict[str, float] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    best_steps: int = 0

    def take(self, steps: int, evaluation: Evaluation) -> bool:
        """Note an evaluation, at step 0 that of the random policy; whether it is the best so far.

        Best is by the run's own measure: the best of a careful run is not its most reckless moment.
        """
        value = evaluation.value()
        best = steps > 0 and value >= self.values.get("best", -math.inf)
        for role in ("random",) if not steps else ("final", "best") if best else ("final",):
            self.means[role], self.values[role] = evaluation.mean, value
        if best:
            self.best_steps = steps
        return best

    def forget_best(self) -> None:
        """Its checkpoint is gone."""
        self.best_steps = 0
        self.means.pop("best", None)
        self.values.pop("best", None)
