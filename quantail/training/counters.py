"""What a run has done so far: steps, episodes, recent returns, and when it last logged or saved."""

import math
from collections import deque
from typing import Any

import numpy as np

from quantail.agents.actor import Episode
from quantail.runs.checkpoints import has_ended
from quantail.stateful import State, require_counts, require_keys, require_numbers

RECENT = 100  # episodes in the running mean of returns


class Counters:
    """Steps and episodes over all environments, the newest episodes and the last loss."""

    def __init__(self) -> None:
        self.steps = 0
        self.episodes = 0
        self.recent: deque[tuple[float, int]] = deque(maxlen=RECENT)  # returns and lengths
        self.last_loss = math.nan

    def add_episode(self, episode: Episode) -> None:
        self.episodes += 1
        self.recent.append((episode.score, len(episode.actions)))

    def recent_means(self) -> tuple[float, float]:
        """Return the mean return and the mean length of the recent episodes, NaN without any."""
        if not self.recent:
            return math.nan, math.nan
        scores, lengths = zip(*self.recent, strict=True)
        return float(np.mean(scores)), float(np.mean(lengths))

    def state_dict(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "episodes": self.episodes,
            "recent": [list(one) for one in self.recent],
            "last_loss": None if math.isnan(self.last_loss) else self.last_loss,
        }

    def load_state_dict(self, state: State) -> None:
        require_keys(state, ("steps", "episodes", "recent", "last_loss"))
        self.steps, self.episodes = state["steps"], state["episodes"]
        self.recent.clear()
        self.recent.extend((score, length) for score, length in state["recent"])
        self.last_loss = math.nan if state["last_loss"] is None else state["last_loss"]

    def check(self) -> None:
        require_counts([self.steps, self.episodes, *(length for _, length in self.recent)])
        require_numbers(score for score, _ in self.recent)
        require_numbers([] if self.last_loss != self.last_loss else [self.last_loss])


class Due:
    """The steps at which the run last logged, was evaluated and was saved."""

    def __init__(self) -> None:
        self.done_at = {"log": 0, "evaluation": -1, "checkpoint": 0}

    def is_due(self, what: str, steps: int, every: int) -> bool:
        """Return whether a multiple of `every` has been reached since it was last done."""
        return steps // every > self.done_at[what] // every

    def is_missing(self, what: str, steps: int) -> bool:
        """Return whether it has not been done at this step."""
        return self.done_at[what] < steps

    def has_ended(self, steps: int, total_steps: int) -> bool:
        """Return whether a run of this length has reached its end."""
        return has_ended(self.done_at, steps, total_steps)

    def done(self, what: str, steps: int) -> None:
        self.done_at[what] = steps

    def state_dict(self) -> dict[str, int]:
        return dict(self.done_at)

    def load_state_dict(self, state: State) -> None:
        require_keys(state, self.done_at)
        self.done_at = dict(state)

    def check(self) -> None:
        require_counts(1 + steps for steps in self.done_at.values())
