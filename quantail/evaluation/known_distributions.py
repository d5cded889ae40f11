"""Compare learned return distributions with the exact ones of a tabular world."""

from dataclasses import dataclass

from quantail.agents.agent import Agent
from quantail.distributions import ReturnDistribution
from quantail.envs.worlds.exact import Solution, one_deviation, solve
from quantail.envs.worlds.tabular import State, World
from quantail.risk import CVaR, RiskMeasure
from quantail.taus import midpoints

TAUS = midpoints(400).numpy()
TAIL = CVaR(0.1)


@dataclass(frozen=True)
class ExactComparison:
    """The errors of one action in one state: 1-Wasserstein distance and error of the tail value."""

    state: State
    action: int
    distance: float
    tail_error: float  # learned minus exact
    near_policy: bool  # whether an episode with at most one deviation from the best policy visits it


def learned_distribution(agent: Agent, world: World, state: State, action: int) -> ReturnDistribution:
    """Return the predicted return distribution as 400 equally likely returns."""
    return ReturnDistribution.of(agent.returns(world.number(state)).quantile(TAUS)[:, action])


def compare_with_exact(
    agent: Agent, world: World, tail: RiskMeasure = TAIL, exact: Solution | None = None
) -> list[ExactComparison]:
    """Compare every state and action with the exact distributions of the best policy.

    The best policy is the one for the agent's own risk measure, unless `exact` is given.
    """
    solution = exact or solve(world, agent.risk)
    close = one_deviation(world, solution.policy)
    rows = []
    for (state, action), distribution in solution.distributions.items():
        value = float(agent.values(world.number(state), tail)[action])
        distance = float(learned_distribution(agent, world, state, action).wasserstein(distribution))
        error = value - float(tail.value(distribution))
        rows.append(ExactComparison(state, action, distance, error, (state, action) in close))
    return rows
