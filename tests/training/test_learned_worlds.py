"""Agents on worlds whose laws are known exactly, with the preset `worlds`, seed 0."""

import numpy as np
import pytest

import quantail
from quantail.envs.worlds import WORLDS, ExactLaw, solve
from quantail.evaluation.calibration import calibrate
from quantail.risk import CVaR, parse_risk

CLIFF = "Quantail/WindyCliff-v0"
TAUS = (np.arange(400) + 0.5) / 400
# The mean over states and actions of the 1-Wasserstein distance, learned to exact.
BOUNDS = {"RiskyBandit": 0.25, "WindyCliff": 0.3, "Chain": 0.6, "Stopping": 0.4}
RUNS = {}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """An agent of this name in this world under this measure, trained once."""

    def get(agent, name, risk):
        if (agent, name, risk) not in RUNS:
            out = tmp_path_factory.mktemp("run") / "run"
            RUNS[agent, name, risk] = quantail.train(name, agent=agent, risk=risk, out=out, threads=1)
        return RUNS[agent, name, risk]

    yield get
    RUNS.clear()


def law_of(agent, world, state, action):
    return ExactLaw.of(agent.returns(world.number(state)).quantile(TAUS)[:, action])


def distances(agent, world, solution):
    return [law_of(agent, world, *key).distance(law) for key, law in solution.laws.items()]


def way(world, choose):
    """The actions from the start, where the likeliest always happens."""
    state, taken = world.states[0], []
    while state is not None:
        action = choose(state)
        taken.append(world.actions[action])
        state = max(world.outcomes(state, action), key=lambda outcome: outcome.chance).state
    return taken


@pytest.mark.parametrize("agent", ["iqn", "qr-dqn"])
def test_the_neutral_agent_walks_along_the_cliff_and_the_careful_one_above_it(trained, agent):
    world = WORLDS[CLIFF]()
    neutral, careful = (trained(agent, CLIFF, risk) for risk in ("neutral", "cvar:0.1"))
    short = way(world, lambda state: neutral.act(world.number(state)))
    long = way(world, lambda state: careful.act(world.number(state)))
    assert "up" not in short
    assert len(short) == 5
    assert "up" in long[:2]
    assert long.count("up") == 1


@pytest.mark.parametrize("agent", ["iqn", "qr-dqn"])
def test_another_measure_at_run_time_values_the_learned_law_as_the_exact_one(trained, agent):
    """Along the edge: elsewhere policies of nearly the same mean have other tails."""
    world, neutral = WORLDS[CLIFF](), trained(agent, CLIFF, "neutral")
    exact = solve(world)
    for column in range(4):
        law = exact.laws[(column, 0), 0]
        values = {
            risk: neutral.values(world.number((column, 0)), risk)[0]
            for risk in ("neutral", "cvar:0.1", "cvar:0.25", "wang:-0.75")
        }
        print(f"{agent}, column {column}:", {risk: f"{value:.2f}" for risk, value in values.items()})
        assert law.mean() - law.value(CVaR(0.1)) > 2
        for risk, value in values.items():
            assert value == pytest.approx(law.value(parse_risk(risk)), abs=0.8), (column, risk)


def near(trained, agent, name):
    world = WORLDS[name]()
    found = distances(trained(agent, name, "neutral"), world, solve(world))
    bound = BOUNDS[name.removeprefix("Quantail/").removesuffix("-v0")]
    print(f"{agent} in {name}: 1-Wasserstein distance {np.mean(found):.3f}, at most {max(found):.3f}")
    assert np.mean(found) < bound
    assert (
        trained(agent, name, "neutral").act(world.number(world.states[0]))
        == solve(world).policy[world.states[0]]
    )


@pytest.mark.parametrize("name", WORLDS)
def test_the_law_that_qr_dqn_learns_is_near_the_exact_one(trained, name):
    near(trained, "qr-dqn", name)


def test_the_law_that_iqn_learns_is_near_the_exact_one(trained):
    near(trained, "iqn", CLIFF)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WORLDS if name != CLIFF])
def test_the_law_that_iqn_learns_is_near_the_exact_one_elsewhere_too(trained, name):
    near(trained, "iqn", name)


def test_what_is_learned_here_is_found_true_by_playing(trained):
    found = calibrate(trained("qr-dqn", "Quantail/Chain-v0", "neutral"), episodes=300, states=0)
    assert found.miscalibration < 0.1
    assert found.judgement().kind in ("true", "close")


@pytest.mark.parametrize("risk", ["neutral", "cvar:0.1"])
def test_the_bandit_s_choice_follows_the_measure(trained, risk):
    world = WORLDS["Quantail/RiskyBandit-v0"]()
    chosen = trained("qr-dqn", "Quantail/RiskyBandit-v0", risk).act(0)
    assert chosen == solve(world, parse_risk(risk)).policy[world.states[0]]
