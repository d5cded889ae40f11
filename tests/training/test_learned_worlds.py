"""Agents trained with the preset `worlds` learn the exact return distributions of the worlds.

The tests compare the last weights with the exact distribution of every state and action. That
distribution assumes the optimal policy afterwards. Where two actions have nearly the same mean but
different distributions, the agent may follow the other one and learn another distribution. A test shows
that WindyCliff has no such state, so there every pair is checked. `Stopping` has many, and in the other
worlds only the mean distance is bounded.
"""

import numpy as np
import pytest

import quantail
from quantail.envs.worlds import WORLDS, solve
from quantail.envs.worlds.exact import follow
from quantail.evaluation.calibration import calibrate
from quantail.evaluation.known_distributions import compare_with_exact
from quantail.risk import CVaR, parse_risk

CLIFF = "Quantail/WindyCliff-v0"
CHAIN = "Quantail/Chain-v0"
BANDIT = "Quantail/RiskyBandit-v0"
# Steps of short runs, of the preset's 80,000: enough for the bounds below with several seeds.
CLIFF_STEPS, RISKY_CLIFF_STEPS, SHORT = 40_000, 20_000, 10_000
# Bounds on the mean 1-Wasserstein distance between learned and exact distributions over all pairs.
BOUNDS = {"RiskyBandit": 0.25, "WindyCliff": 0.15, "Chain": 0.5, "Stopping": 0.3}
# In WindyCliff, additional bounds on the largest distance and on the error of CVaR(0.1), which is −9.1
# at the start along the edge and −5.9 above it. "Near" pairs are those that an episode of the optimal
# policy with at most one deviation may visit.
MAX_DISTANCE, TAIL_MEAN, TAIL_NEAR = 0.35, 0.4, 1.25
TIE = 0.2  # larger than the error of a learned mean
# Bounds on the error of values under other measures, for all pairs.
VALUES = {"neutral": TIE, "cvar:0.25": 0.8, "wang:-0.75": 0.6, "wang:0.75": 0.3}
RUNS = {}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a function that trains an agent in a world, once for each configuration."""

    def get(agent, name, risk="neutral", seed=0, **changes):
        key = (agent, name, risk, seed, *changes.items())
        if key not in RUNS:
            out = tmp_path_factory.mktemp("run") / "run"
            quantail.train(name, agent=agent, risk=risk, seed=seed, out=out, threads=1, **changes)
            RUNS[key] = quantail.load(out, "last")
        return RUNS[key]

    yield get
    RUNS.clear()


def path(world, choose):
    """Return the names of the actions from the start if the most likely outcome always happens."""
    state, actions = world.states[0], []
    while state is not None:
        action = choose(state)
        actions.append(world.actions[action])
        state = max(world.outcomes(state, action), key=lambda outcome: outcome.probability).state
    return actions


def walk(agent, risk=None):
    world = WORLDS[CLIFF]()
    return path(world, lambda state: agent.act(world.number(state), risk))


def test_at_the_cliff_actions_with_nearly_the_same_mean_have_the_same_distribution():
    """So the distribution of every pair is well defined, whichever of them the agent follows."""
    world = WORLDS[CLIFF]()
    exact = solve(world)
    for state, best in exact.policy.items():
        for action in range(len(world.actions)):
            distribution, other = exact.distributions[state, best], exact.distributions[state, action]
            if distribution.mean() - other.mean() < TIE:
                assert distribution.wasserstein(other) < 1e-9, (state, action)


def assert_learned(agent):
    """Check every distribution of the cliff, and its value under measures other than the trained one."""
    world = WORLDS[CLIFF]()
    exact = solve(world)
    rows = compare_with_exact(agent, world)
    distances = np.array([row.distance for row in rows])
    tail = np.abs([row.tail_error for row in rows])
    near = np.array([row.near_policy for row in rows])
    assert len(rows) == 45
    assert near.sum() == 20
    print(
        f"{agent.config.run.agent}, seed {agent.config.run.seed}: distance {distances.mean():.2f}, "
        f"at most {distances.max():.2f}; CVaR(0.1) off by {tail.mean():.2f}, "
        f"near {tail[near].max():.2f}"
    )
    assert distances.mean() < BOUNDS["WindyCliff"]
    assert distances.max() < MAX_DISTANCE
    assert tail.mean() < TAIL_MEAN
    assert tail[near].max() < TAIL_NEAR
    for (state, action), distribution in exact.distributions.items():
        for risk, bound in VALUES.items():
            value = agent.values(world.number(state), risk)[action]
            assert value == pytest.approx(float(parse_risk(risk).value(distribution)), abs=bound), (
                state,
                action,
                risk,
            )


def assert_chooses(agent):
    """Check that a neutral agent walks along the edge, and above it when it acts under CVaR(0.1)."""
    start = WORLDS[CLIFF]().number((0, 0))
    assert "up" not in walk(agent)
    assert len(walk(agent)) == 5
    values = agent.values(start, CVaR(0.1))
    assert values[1] > values[0] + 2
    assert values[1] > values[2] + 2
    assert walk(agent, CVaR(0.1))[0] == "up"


def test_iqn_learns_the_distribution_of_every_action_at_the_cliff(trained):
    assert_learned(trained("iqn", CLIFF, steps=CLIFF_STEPS))


def test_another_risk_measure_changes_the_actions_of_a_neutral_agent(trained):
    assert_chooses(trained("iqn", CLIFF, steps=CLIFF_STEPS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "seed"), [(agent, seed) for agent in ("iqn", "qr-dqn") for seed in range(4)]
)
def test_with_every_seed_the_whole_budget_of_the_preset_learns_the_same(trained, agent, seed):
    found = trained(agent, CLIFF, seed=seed)
    assert_learned(found)
    assert_chooses(found)


def assert_risk_averse(agent, tolerance):
    """Check that the policy's CVaR(0.1) is close to the best, −5.9; along the edge it is −9.1."""
    world = WORLDS[CLIFF]()
    policy = {state: agent.act(world.number(state)) for state in world.states}
    value, best = (
        float(CVaR(0.1).value(solution.distribution((0, 0))))
        for solution in (follow(world, policy), solve(world, CVaR(0.1)))
    )
    print(
        f"{agent.config.run.agent}, seed {agent.config.run.seed}: {walk(agent)}, CVaR(0.1) {value:.2f}"
    )
    assert walk(agent)[0] == "up"
    assert value > best - tolerance


def test_a_risk_averse_agent_walks_above_the_cliff(trained):
    """After a short run the agent may take one step too many, which costs 0.94."""
    assert_risk_averse(trained("qr-dqn", CLIFF, "cvar:0.1", steps=RISKY_CLIFF_STEPS), tolerance=1.5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("agent", ["iqn", "qr-dqn"])
def test_with_every_seed_a_risk_averse_agent_walks_above_the_cliff(trained, agent, seed):
    assert_risk_averse(trained(agent, CLIFF, "cvar:0.1", seed), tolerance=0.1)


def assert_near(agent, name, bound):
    world = WORLDS[name]()
    found = [row.distance for row in compare_with_exact(agent, world)]
    print(f"{agent.config.run.agent} in {name}: distance {np.mean(found):.3f}, at most {max(found):.3f}")
    assert np.mean(found) < bound
    assert agent.act(world.number(world.states[0])) == solve(world).policy[world.states[0]]


@pytest.mark.parametrize(("name", "bound"), [(BANDIT, 0.3), (CHAIN, 0.6)])
def test_a_short_run_of_qr_dqn_comes_close_to_the_exact_distribution(trained, name, bound):
    assert_near(trained("qr-dqn", name, steps=SHORT), name, bound)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["iqn", "qr-dqn"])
@pytest.mark.parametrize("name", [name for name in WORLDS if name != CLIFF])
def test_the_learned_distributions_are_close_in_the_other_worlds_too(trained, agent, name):
    assert_near(trained(agent, name), name, BOUNDS[name.removeprefix("Quantail/").removesuffix("-v0")])


def test_an_agent_that_learned_the_exact_distribution_is_calibrated(trained):
    found = calibrate(trained("qr-dqn", CHAIN, steps=SHORT), episodes=300, states=0)
    assert found.miscalibration < 0.1


@pytest.mark.parametrize("risk", ["neutral", "cvar:0.1"])
def test_the_choice_in_the_bandit_depends_on_the_risk_measure(trained, risk):
    world = WORLDS[BANDIT]()
    chosen = trained("qr-dqn", BANDIT, risk, steps=SHORT).act(0)
    assert chosen == solve(world, parse_risk(risk)).policy[world.states[0]]
