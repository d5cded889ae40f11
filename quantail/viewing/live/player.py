"""One agent at play, a decision at a time, under a risk measure that may change at any moment."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from quantail.acting.agent import Agent
from quantail.envs import EnvSource
from quantail.envs.learned import as_learned
from quantail.envs.names import action_names
from quantail.evaluation.calibration.play import discounted
from quantail.risk import RiskMeasure
from quantail.viewing.pictures import picture_of, with_pictures
from quantail.viewing.scenes import Scene, look

Array = NDArray[np.float64]
FORGOTTEN = 0.05  # a return is known once what is still to come counts less than this share


@dataclass
class Trace:
    """An episode so far: what was expected at each decision, and what each one brought."""

    predicted: list[float] = field(default_factory=list)  # mean return of the action taken
    rewards: list[float] = field(default_factory=list)  # as learning sees them
    ends: list[bool] = field(default_factory=list)  # where the return ends

    def came(self, discount: float, begin: int = 0) -> tuple[Array, NDArray[np.bool_]]:
        """The discounted return from each step from `begin` on, and whether it is known yet."""
        rewards, ends = self.rewards[begin:], self.ends[begin:]
        returns = discounted(rewards, discount, ends)
        open_share = discounted([0.0] * len(rewards), discount, ends, rest=1.0)  # still to come
        return returns, open_share < FORGOTTEN


class Player:
    """An agent in an environment, and the scene that it decides on next."""

    def __init__(self, agent: Agent, risk: RiskMeasure, env: EnvSource | None = None) -> None:
        self.agent, self.risk = agent, risk
        self.env = with_pictures(env or agent.env, agent)
        self.names = action_names(self.env)
        self.scene: Scene
        self.restart(0)

    def restart(self, seed: int) -> None:
        """Begin an episode."""
        self.seed = seed
        self.observation, _ = self.env.reset(seed=seed)
        self.trace = Trace()
        self.steps, self.score, self.over = 0, 0.0, ""
        self._look()

    def turn(self, risk: RiskMeasure) -> None:
        """Another attitude to risk, from this decision on."""
        self.risk = risk
        if not self.over:
            self._look()

    def take(self, agent: Agent) -> None:
        """Other weights for the same environment, from this decision on."""
        self.agent = agent
        if not self.over:
            self._look()

    def step(self) -> None:
        """Do what the scene has chosen; nothing once the episode is over."""
        if self.over:
            return
        action = self.scene.chosen + self.agent.actions.start
        predicted = float(self.scene.means[self.scene.chosen])
        self.observation, reward, terminated, truncated, info = self.env.step(action)
        life_lost = bool(info.get("life_lost", False))
        learned, ends = as_learned(
            self.agent.settings, reward, terminated=terminated, life_lost=life_lost
        )
        self.trace.predicted.append(predicted)
        self.trace.rewards.append(learned)
        self.trace.ends.append(ends)
        self.steps += 1
        self.score += reward
        if terminated or truncated:
            self.over = "the end" if terminated else "cut by a time limit"
            # What led here stays on the screen.
            self.scene = replace(self.scene, picture=picture_of(self.env))
        else:
            self._look()

    def close(self) -> None:
        self.env.close()

    def _look(self) -> None:
        self.scene = look(self.agent, self.observation, self.risk, picture_of(self.env))
