"""How near what an agent has learned of a world is to what is exactly so."""

from dataclasses import dataclass

import numpy as np

from quantail.acting.agent import Agent
from quantail.envs.worlds.exact import ExactLaw, Solution, one_deviation, solve
from quantail.envs.worlds.tabular import State, World
from quantail.risk import CVaR, RiskMeasure, midpoints

TAUS = midpoints(400).numpy()
TAIL = CVaR(0.1)


@dataclass(frozen=True)
class Nearness:
    """Of one action in one state: the 1-Wasserstein distance, and the error of its value in the tail."""

    state: State
    action: int
    distance: float
    tail_error: float  # learned minus exact
    near: bool  # whether the best policy, or one deviation from it, comes by here


def learned_law(agent: Agent, world: World, state: State, action: int) -> ExactLaw:
    """What the agent expects, as 400 equally likely returns."""
    return ExactLaw.of(agent.returns(world.number(state)).quantile(TAUS)[:, action].astype(np.float64))


def nearness(
    agent: Agent, world: World, tail: RiskMeasure = TAIL, exact: Solution | None = None
) -> list[Nearness]:
    """A row for every state and action, beside the laws of the policy that is best under its risk."""
    solution = exact or solve(world, agent.risk)
    close = one_deviation(world, solution.policy)
    rows = []
    for (state, action), law in solution.laws.items():
        value = float(agent.values(world.number(state), tail)[action])
        distance = learned_law(agent, world, state, action).distance(law)
        rows.append(Nearness(state, action, distance, value - law.value(tail), (state, action) in close))
    return rows
