"""Exact return laws and best policies of a world, by going backwards from its ends.

The notion of risk is the paper's: in every state the action with the best distorted value of the law of
the return *from there on*, given that the same is done ever after. It is not the static risk of the
whole episode's return, seen from its start: `static_best` finds that.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray

from quantail.envs.worlds.tabular import State, World
from quantail.risk import Neutral, RiskMeasure

Array = NDArray[np.float64]
SAME = 1e-12  # returns closer than this are one


@dataclass(frozen=True)
class ExactLaw:
    """A law of finitely many returns, rising, and the chance of each."""

    returns: Array
    chances: Array

    def mean(self) -> float:
        return float(self.returns @ self.chances)

    def std(self) -> float:
        return float(np.sqrt(self.chances @ (self.returns - self.mean()) ** 2))

    def value(self, risk: RiskMeasure) -> float:
        """Q_β = Σ_i z_i (β⁻¹(c_i) − β⁻¹(c_{i−1})), c the cumulated chances."""
        if isinstance(risk, Neutral):
            return self.mean()
        edges = risk.inverse(torch.from_numpy(self._cumulated())).numpy()
        return float(np.diff(edges, prepend=0.0) @ self.returns)

    def quantile(self, taus: Array) -> Array:
        """The least return z with F(z) ≥ τ."""
        index = np.searchsorted(self._cumulated(), np.asarray(taus, np.float64) - SAME)
        return self.returns[np.minimum(index, len(self.returns) - 1)]

    def cdf(self, returns: Array) -> Array:
        """The chance of at most so much."""
        index = np.searchsorted(self.returns, np.asarray(returns, np.float64) + SAME, side="right")
        return np.concatenate([[0.0], self._cumulated()])[index]

    def distance(self, other: "ExactLaw") -> float:
        """The 1-Wasserstein distance: the area between the two distribution functions."""
        points = np.union1d(self.returns, other.returns)
        apart = np.abs(self.cdf(points) - other.cdf(points))
        return float(apart[:-1] @ np.diff(points))

    @classmethod
    def of(cls, returns: Array, chances: Array | None = None) -> "ExactLaw":
        """A law of returns in any order, equally likely unless told; equal ones are taken together."""
        values = np.asarray(returns, np.float64)
        weights = np.full(len(values), 1 / len(values)) if chances is None else np.asarray(chances)
        order = np.argsort(values, kind="stable")
        values, weights = values[order], weights[order]
        first = np.concatenate([[True], np.diff(values) > SAME])
        return cls(values[first], np.add.reduceat(weights, np.flatnonzero(first)))

    def _cumulated(self) -> Array:
        cumulated = np.minimum(np.cumsum(self.chances), 1.0)
        cumulated[-1] = 1.0
        return cumulated


@dataclass(frozen=True)
class Solution:
    """The best policy of a world under a measure, and the law of the return that it leads to."""

    policy: Mapping[State, int]
    laws: Mapping[tuple[State, int], ExactLaw]  # of taking an action, then following the policy

    def law(self, state: State) -> ExactLaw:
        """Of following the policy from a state."""
        return self.laws[state, self.policy[state]]


def solve(world: World, risk: RiskMeasure | None = None, discount: float | None = None) -> Solution:
    """The policy that takes the best distorted value in every state, and its laws."""
    return _backwards(world, risk or Neutral(), {}, discount)


def follow(world: World, policy: Mapping[State, int], discount: float | None = None) -> Solution:
    """The laws of a given policy."""
    return _backwards(world, Neutral(), policy, discount)


def one_deviation(world: World, policy: Mapping[State, int]) -> set[tuple[State, int]]:
    """States and actions that an episode may come by in which the policy is left once at most."""
    followed = _reached(world, policy, [world.states[0]])
    pairs = {(state, action) for state in followed for action in range(len(world.actions))}
    after = {o.state for pair in pairs for o in world.outcomes(*pair) if o.state is not None}
    return pairs | {(state, policy[state]) for state in _reached(world, policy, sorted(after))}


def static_best(
    world: World, risk: RiskMeasure, discount: float | None = None
) -> tuple[dict[State, int], float]:
    """Of all policies that look at the state alone, the best by the risk of the whole episode's return.

    Every policy is tried, so this is for the smallest worlds.
    """
    best, most = {}, -np.inf
    for choice in product(range(len(world.actions)), repeat=len(world.states)):
        policy = dict(zip(world.states, choice, strict=True))
        value = follow(world, policy, discount).law(world.states[0]).value(risk)
        if value > most + SAME:
            best, most = policy, value
    return best, float(most)


def _law(
    world: World,
    state: State,
    action: int,
    policy: Mapping[State, int],
    laws: Mapping[tuple[State, int], ExactLaw],
    discount: float,
) -> ExactLaw:
    returns, chances = [], []
    for outcome in world.outcomes(state, action):
        if outcome.state is None:
            returns.append(np.array([outcome.reward]))
            chances.append(np.array([outcome.chance]))
        else:
            then = laws[outcome.state, policy[outcome.state]]
            returns.append(outcome.reward + discount * then.returns)
            chances.append(outcome.chance * then.chances)
    return ExactLaw.of(np.concatenate(returns), np.concatenate(chances))


def _backwards(
    world: World, risk: RiskMeasure, given: Mapping[State, int], discount: float | None
) -> Solution:
    """Laws from the ends to the start; where no action is given, the best under the measure."""
    gamma = world.discount if discount is None else discount
    policy: dict[State, int] = dict(given)
    laws: dict[tuple[State, int], ExactLaw] = {}
    actions = range(len(world.actions))
    for state in _from_the_ends(world):
        for action in actions:
            laws[state, action] = _law(world, state, action, policy, laws, gamma)
        if state not in policy:
            policy[state] = int(np.argmax([laws[state, action].value(risk) for action in actions]))
    return Solution(policy, laws)


def _reached(world: World, policy: Mapping[State, int], begin: Iterable[State]) -> set[State]:
    """These states, and all that may be met from them by following the policy."""
    seen: set[State] = set()
    waiting = list(begin)
    while waiting:
        state = waiting.pop()
        if state not in seen:
            seen.add(state)
            outcomes = world.outcomes(state, policy[state])
            waiting += [outcome.state for outcome in outcomes if outcome.state is not None]
    return seen


def _from_the_ends(world: World) -> list[State]:
    """The states, each after all that may follow it."""
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
