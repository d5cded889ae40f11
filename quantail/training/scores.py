"""The scores of a run's random, final and best policies."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from quantail.evaluation.evaluate import Evaluation
from quantail.stateful import State, require_counts, require_keys, require_numbers


@dataclass
class Scores:
    """Mean return, and value under the run's risk measure, of its random, final and best policies."""

    means: dict[str, float] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    best_steps: int = 0

    def update(self, steps: int, evaluation: Evaluation) -> bool:
        """Record an evaluation and return whether it is the best so far.

        The evaluation at step 0 is that of the random policy. Policies are compared under the run's own
        risk measure, so the best policy of a risk-averse run is not necessarily the one with the highest
        mean.
        """
        value = evaluation.value()
        best = steps > 0 and value >= self.values.get("best", -math.inf)
        for role in ("random",) if not steps else ("final", "best") if best else ("final",):
            self.means[role], self.values[role] = evaluation.mean, value
        if best:
            self.best_steps = steps
        return best

    def state_dict(self) -> dict[str, Any]:
        return asdict(self)

    def load_state_dict(self, state: State) -> None:
        require_keys(state, ("means", "values", "best_steps"))
        self.means, self.values = dict(state["means"]), dict(state["values"])
        self.best_steps = state["best_steps"]

    def check(self) -> None:
        require_counts([self.best_steps])
        require_numbers([*self.means.values(), *self.values.values()])

    def clear_best(self) -> None:
        """Remove the scores of the best policy, because its checkpoint no longer exists."""
        self.best_steps = 0
        self.means.pop("best", None)
        self.values.pop("best", None)
