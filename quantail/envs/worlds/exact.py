"""Exact return distributions and optimal policies of a world, by backward induction.

Risk is defined as in the paper: in every state, choose the action with the best distorted value of the
return *from that state on*, given that the same rule is followed afterwards. This is not the static risk
of the whole episode's return, seen from its start; `static_best` optimises that.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from quantail.distributions import SAME, ReturnDistribution
from quantail.envs.worlds.tabular import State, World
from quantail.risk import Neutral, RiskMeasure

Array = NDArray[np.float64]


def exact_distribution(returns: Array, probabilities: Array) -> ReturnDistribution:
    """Return the distribution of unsorted returns in ascending order, with equal returns merged.

    Args:
        returns: The returns, [n].
        probabilities: Their probabilities, [n].
    """
    order = np.argsort(returns, kind="stable")
    values, weights = returns[order], probabilities[order]
    first = np.concatenate([[True], np.diff(values) > SAME])
    return ReturnDistribution.of(values[first], np.add.reduceat(weights, np.flatnonzero(first)))


@dataclass(frozen=True)
class Solution:
    """The best policy of a world under a risk measure, and its return distributions.

    Attributes:
        policy: The action of the policy in each state.
        distributions: For each state and action, the distribution of the return of taking the action and
            following the policy afterwards.
    """

    policy: Mapping[State, int]
    # Returns of taking an action in a state and following the policy afterwards.
    distributions: Mapping[tuple[State, int], ReturnDistribution]

    def distribution(self, state: State) -> ReturnDistribution:
        """Return the return distribution of following the policy from a state."""
        return self.distributions[state, self.policy[state]]


def solve(world: World, risk: RiskMeasure | None = None, discount: float | None = None) -> Solution:
    """Return the best policy of a world under a risk measure, and its exact return distributions.

    The policy is that of the paper: in each state, it takes the action with the best distorted value of
    the future return under the same policy. This is not the risk measure of whole episodes.

    Args:
        world: The world.
        risk: The risk measure; by default the mean.
        discount: The discount factor; by default the world's own.
    """
    return _backward_induction(world, risk or Neutral(), {}, discount)


def follow(world: World, policy: Mapping[State, int], discount: float | None = None) -> Solution:
    """Return the return distributions of a given policy."""
    return _backward_induction(world, Neutral(), policy, discount)


def one_deviation(world: World, policy: Mapping[State, int]) -> set[tuple[State, int]]:
    """Return the state-action pairs that an episode with at most one deviation may visit."""
    followed = _reached(world, policy, [world.states[0]])
    pairs = {(state, action) for state in followed for action in range(len(world.actions))}
    after = {o.state for pair in pairs for o in world.outcomes(*pair) if o.state is not None}
    return pairs | {(state, policy[state]) for state in _reached(world, policy, sorted(after))}


def static_best(
    world: World, risk: RiskMeasure, discount: float | None = None
) -> tuple[dict[State, int], float]:
    """Return the stationary policy with the best risk of the whole episode's return, and its value.

    All policies are enumerated, so this is only for the smallest worlds.
    """
    best, best_value = {}, -np.inf
    for choice in product(range(len(world.actions)), repeat=len(world.states)):
        policy = dict(zip(world.states, choice, strict=True))
        value = float(risk.value(follow(world, policy, discount).distribution(world.states[0])))
        if value > best_value + SAME:
            best, best_value = policy, value
    return best, float(best_value)


def backup(
    world: World,
    state: State,
    action: int,
    policy: Mapping[State, int],
    distributions: Mapping[tuple[State, int], ReturnDistribution],
    discount: float,
) -> ReturnDistribution:
    """Return the distribution of r + γ Z(x′, π(x′)) after an action: one step of policy evaluation."""
    returns, probabilities = [], []
    for outcome in world.outcomes(state, action):
        if outcome.state is None:
            returns.append(np.array([outcome.reward]))
            probabilities.append(np.array([outcome.probability]))
        else:
            following = distributions[outcome.state, policy[outcome.state]]
            returns.append(outcome.reward + discount * following.atoms.numpy())
            probabilities.append(outcome.probability * following.probabilities().numpy())
    return exact_distribution(np.concatenate(returns), np.concatenate(probabilities))


def _backward_induction(
    world: World, risk: RiskMeasure, given: Mapping[State, int], discount: float | None
) -> Solution:
    """Compute the distributions from the terminal states back to the start.

    Where no action is given, choose the best under the risk measure.
    """
    gamma = world.discount if discount is None else discount
    policy: dict[State, int] = dict(given)
    distributions: dict[tuple[State, int], ReturnDistribution] = {}
    actions = range(len(world.actions))
    for state in _reverse_topological_order(world):
        for action in actions:
            distributions[state, action] = backup(world, state, action, policy, distributions, gamma)
        if state not in policy:
            values = [float(risk.value(distributions[state, action])) for action in actions]
            policy[state] = int(np.argmax(values))
    return Solution(policy, distributions)


def _reached(world: World, policy: Mapping[State, int], begin: Iterable[State]) -> set[State]:
    """Return these states and all that can be reached from them by following the policy."""
    seen: set[State] = set()
    waiting = list(begin)
    while waiting:
        state = waiting.pop()
        if state not in seen:
            seen.add(state)
            outcomes = world.outcomes(state, policy[state])
            waiting += [outcome.state for outcome in outcomes if outcome.state is not None]
    return seen


def _reverse_topological_order(world: World) -> list[State]:
    """Return the states, each after all of its possible successors."""
    ordered: list[State] = []
    seen: set[State] = set()

    def visit(state: State) -> None:
        if state in seen:
            return
        seen.add(state)
        for action in range(len(world.actions)):
            for outcome in world.outcomes(state, action):
                if outcome.state is not None:
                    visit(outcome.state)
        ordered.append(state)

    for state in world.states:
        visit(state)
    return ordered
