"""One agent that plays step by step, under a risk measure that may change at any step."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quantail.agents.agent import Agent
from quantail.envs import EnvSource
from quantail.envs.families import configured
from quantail.envs.training_reward import training_reward
from quantail.errors import QuantailError
from quantail.evaluation.calibration.play import discounted_returns
from quantail.risk import RiskMeasure, parse_risk
from quantail.spaces import content_of
from quantail.viewing.pictures import picture_of, with_pictures
from quantail.viewing.scenes import TAUS, Scene, make_scene

Array = NDArray[np.float64]
NEGLIGIBLE = 0.05  # a return counts as known once the discount of future rewards is below this


@dataclass
class EpisodeTrace:
    """The episode so far: the predicted mean and the reward of each step."""

    predicted: list[float] = field(default_factory=list)  # mean return of the chosen action
    rewards: list[float] = field(default_factory=list)  # as the agent is trained on them
    ends: list[bool] = field(default_factory=list)  # whether the return ends at the step

    def actual_returns(self, discount: float, begin: int = 0) -> tuple[Array, NDArray[np.bool_]]:
        """Return the discounted return of each step from `begin` on, and whether it is known yet."""
        rewards, ends = self.rewards[begin:], self.ends[begin:]
        returns = discounted_returns(rewards, discount, ends)
        future = discounted_returns([0.0] * len(rewards), discount, ends, rest=1.0)  # weight of the rest
        return returns, future < NEGLIGIBLE


class Player:
    """An agent in an environment, and the scene of its next decision."""

    def __init__(self, agent: Agent, risk: RiskMeasure, env: EnvSource | None = None) -> None:
        self.agent, self.risk = agent, risk
        self.env = with_pictures(env or agent.env, agent)
        self.names = self.env.action_names()
        self.scene: Scene
        self._exact: dict[bytes, Array] = {}
        self._solve()
        self.restart(0)

    def restart(self, seed: int) -> None:
        """Start an episode."""
        self.seed = seed
        self.observation, _ = self.env.reset(seed=seed)
        self.trace = EpisodeTrace()
        self.steps, self.score, self.over = 0, 0.0, ""
        self._update_scene()

    def set_risk(self, risk: RiskMeasure) -> None:
        """Change the risk measure, from this decision on."""
        self.risk = risk
        if not self.over:
            self._update_scene()

    def set_agent(self, agent: Agent) -> None:
        """Change the agent, from this decision on; it must use the same environment."""
        self.agent = agent
        self._solve()
        # Returns end where the learning of this agent ends them.
        self.env.family = configured(self.env.family, agent.config.environment)
        if not self.over:
            self._update_scene()

    def step(self) -> None:
        """Take the chosen action; do nothing once the episode is over."""
        if self.over:
            return
        action = self.agent.actions.to_env(self.scene.chosen)
        predicted = float(self.scene.means[self.scene.chosen])
        self.observation, reward, terminated, truncated, info = self.env.step(action)
        self.trace.predicted.append(predicted)
        self.trace.rewards.append(training_reward(self.agent.config.environment, reward))
        self.trace.ends.append(self.env.ends_return(terminated, info))
        self.steps += 1
        self.score += reward
        if terminated or truncated:
            self.over = "terminated" if terminated else "truncated"
            # The last decision stays on the screen, with the final picture.
            self.scene = replace(self.scene, picture=picture_of(self.env))
        else:
            self._update_scene()

    def _solve(self) -> None:
        """Compute the exact quantiles at every observation, if the environment knows its model."""
        config = self.agent.config
        self._exact = {}
        self.target = config.risk.target_risk or config.risk.risk  # the measure of the learned policy
        try:
            target = parse_risk(self.target)
        except QuantailError:  # a Python function that run.json names
            return

        def greedy(observation: Any) -> int:
            return int(self.agent.actions.from_env(self.agent.act(observation, target)))

        known = (
            {}
            if config.environment.clip_rewards
            else self.env.exact_returns(greedy, config.learner.discount)
        )
        self._exact = {
            key: np.stack([one.quantile(torch.from_numpy(TAUS)).numpy() for one in actions], axis=1)
            for key, actions in known.items()
        }

    def close(self) -> None:
        self.env.close()

    def _update_scene(self) -> None:
        # Exact quantiles of every action's return, [taus, actions], under the policy that the agent has
        # learned; None where they are unknown.
        self.exact = self._exact.get(content_of(self.observation))
        picture, allowed = picture_of(self.env), self.env.action_mask
        self.scene = make_scene(self.agent, self.observation, self.risk, picture, allowed)
