import numpy as np
import pytest

from quantail.envs.worlds import WORLDS, solve
from quantail.evaluation.known_distributions import compare_with_exact
from quantail.risk import CVaR, Neutral


class Oracle:
    """An agent with exact distributions, shifted by `off` in some states and actions."""

    risk = Neutral()

    def __init__(self, world, off):
        self.world, self.exact, self.off = world, solve(world), off

    def returns(self, number):
        return OracleReturns(self, self.world.states[number])

    def values(self, number, risk):
        returns, taus = (
            OracleReturns(self, self.world.states[number]),
            (np.arange(20_000) + 0.5) / 20_000,
        )
        return returns.quantile(np.asarray(risk(taus))).mean(axis=0)


class OracleReturns:
    """The return distributions of all actions in one state."""

    def __init__(self, oracle, state):
        self.oracle, self.state = oracle, state

    def quantile(self, taus):
        actions = range(len(self.oracle.world.actions))
        distributions = [self.oracle.exact.distributions[self.state, action] for action in actions]
        off = [self.oracle.off.get((self.state, action), 0.0) for action in actions]
        return np.stack([distribution.quantile(taus) for distribution in distributions], axis=1) + off


@pytest.mark.parametrize("name", WORLDS)
def test_an_exact_agent_has_no_error_anywhere(name):
    world = WORLDS[name]()
    rows = compare_with_exact(Oracle(world, {}), world)
    assert len(rows) == len(world.states) * len(world.actions)
    assert max(row.distance for row in rows) < 0.02
    assert max(abs(row.tail_error) for row in rows) < 1e-3


def test_a_shifted_prediction_has_that_error_and_only_there():
    world = WORLDS["Quantail/WindyCliff-v0"]()
    rows = compare_with_exact(Oracle(world, {((0, 0), 1): 0.5, ((1, 2), 0): -2.0}), world, CVaR(0.25))
    found = {(row.state, row.action): row for row in rows}
    assert found[(0, 0), 1].distance == pytest.approx(0.5, abs=0.02)
    assert found[(0, 0), 1].tail_error == pytest.approx(0.5, abs=1e-3)
    assert found[(1, 2), 0].tail_error == pytest.approx(-2.0, abs=1e-3)
    assert sum(row.distance > 0.1 for row in rows) == 2
    assert found[(0, 0), 1].near_policy
    assert not found[(1, 2), 0].near_policy
