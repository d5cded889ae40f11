import numpy as np
import pytest

from quantail.envs.worlds import WORLDS, solve
from quantail.evaluation.known_laws import nearness
from quantail.risk import CVaR, Neutral


class Oracle:
    """An agent that knows the exact law, and is off by so much in one state and action."""

    risk = Neutral()

    def __init__(self, world, off):
        self.world, self.exact, self.off = world, solve(world), off

    def returns(self, number):
        return Told(self, self.world.states[number])

    def values(self, number, risk):
        told, taus = Told(self, self.world.states[number]), (np.arange(20_000) + 0.5) / 20_000
        return told.quantile(np.asarray(risk(taus))).mean(axis=0)


class Told:
    def __init__(self, oracle, state):
        self.oracle, self.state = oracle, state

    def quantile(self, taus):
        actions = range(len(self.oracle.world.actions))
        laws = [self.oracle.exact.laws[self.state, action] for action in actions]
        off = [self.oracle.off.get((self.state, action), 0.0) for action in actions]
        return np.stack([law.quantile(taus) for law in laws], axis=1) + off


@pytest.mark.parametrize("name", WORLDS)
def test_who_knows_the_exact_law_is_nowhere_off(name):
    world = WORLDS[name]()
    rows = nearness(Oracle(world, {}), world)
    assert len(rows) == len(world.states) * len(world.actions)
    assert max(row.distance for row in rows) < 0.02
    assert max(abs(row.tail_error) for row in rows) < 1e-3


def test_who_expects_too_much_is_off_by_that_much_and_only_there():
    world = WORLDS["Quantail/WindyCliff-v0"]()
    rows = nearness(Oracle(world, {((0, 0), 1): 0.5, ((1, 2), 0): -2.0}), world, CVaR(0.25))
    found = {(row.state, row.action): row for row in rows}
    assert found[(0, 0), 1].distance == pytest.approx(0.5, abs=0.02)
    assert found[(0, 0), 1].tail_error == pytest.approx(0.5, abs=1e-3)
    assert found[(1, 2), 0].tail_error == pytest.approx(-2.0, abs=1e-3)
    assert sum(row.distance > 0.1 for row in rows) == 2
    assert found[(0, 0), 1].near
    assert not found[(1, 2), 0].near
