"""Worlds of which everything is known: is it so?"""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import quantail
from quantail.envs.make import default_preset
from quantail.envs.worlds import WORLDS, ExactLaw, solve
from quantail.envs.worlds.exact import follow, static_best
from quantail.risk import CPW, CVaR, Neutral, Norm, Pow, Wang

MEASURES = [Neutral(), CVaR(0.1), CVaR(0.25), Wang(-0.75), Wang(0.75), CPW(0.71), Pow(-2.0), Norm(3)]


@pytest.fixture(params=WORLDS)
def name(request):
    return request.param


def played(world, policy, episodes, discount, state=None):
    """Discounted returns of a policy, by playing."""
    returns = []
    for seed in range(episodes):
        world.reset(seed=seed, options={"state": state} if state else None)
        total, weight, over = 0.0, 1.0, False
        while not over:
            _, reward, over, _, _ = world.step(policy[world.state])
            total, weight = total + weight * reward, weight * discount
        returns.append(total)
    return np.array(returns)


def test_a_world_is_a_gymnasium_environment_that_agents_take(name):
    env = quantail.make(name, render_mode="rgb_array")
    check_env(gym.make(name, render_mode="rgb_array").unwrapped, skip_render_check=True)
    assert default_preset(name) == "worlds"
    observation, _ = env.reset(seed=0)
    assert observation.sum() == 1
    assert env.render().dtype == np.uint8
    assert env.render().shape[2] == 3


def test_chances_are_chances_and_lead_to_states_that_there_are(name):
    world = WORLDS[name]()
    for state in world.states:
        for action in range(len(world.actions)):
            outcomes = world.outcomes(state, action)
            assert sum(outcome.chance for outcome in outcomes) == pytest.approx(1)
            assert all(outcome.chance > 0 for outcome in outcomes)
            assert all(outcome.state is None or outcome.state in world.states for outcome in outcomes)


@pytest.mark.parametrize("risk", MEASURES, ids=str)
def test_the_exact_law_is_that_of_played_episodes(name, risk):
    world = WORLDS[name]()
    solution = solve(world, risk)
    law = solution.law(world.states[0])
    returns = played(world, solution.policy, 3000, world.discount)
    spread = law.std()
    assert ExactLaw.of(returns).distance(law) < 0.1 * spread + 1e-9
    assert law.mean() == pytest.approx(returns.mean(), abs=5 * spread / np.sqrt(3000) + 1e-9)


def test_the_law_of_an_action_is_that_of_taking_it_and_then_following_the_policy():
    world = WORLDS["Quantail/WindyCliff-v0"]()
    solution = solve(world, CVaR(0.1))
    state = (3, 0)
    for action in range(3):
        first = {**solution.policy, state: action}  # a state is never seen twice
        returns = played(world, first, 3000, world.discount, state)
        assert ExactLaw.of(returns).distance(solution.laws[state, action]) < 0.25


def test_the_neutral_policy_has_the_best_mean_of_all_policies():
    for name in ("Quantail/RiskyBandit-v0", "Quantail/Chain-v0"):
        world = WORLDS[name]()
        _, best = static_best(world, Neutral(), world.discount)
        assert solve(world).law(world.states[0]).mean() == pytest.approx(best)


def test_in_every_state_the_policy_takes_the_best_distorted_value(name):
    world = WORLDS[name]()
    for risk in MEASURES:
        solution = solve(world, risk)
        for state, action in solution.policy.items():
            values = [solution.laws[state, other].value(risk) for other in range(len(world.actions))]
            assert values[action] == max(values)


@pytest.mark.parametrize("risk", MEASURES, ids=str)
def test_a_value_is_the_mean_of_quantiles_at_distorted_levels(risk):
    law = ExactLaw.of(np.array([3.0, -1.0, 2.0, 3.0]), np.array([0.2, 0.3, 0.1, 0.4]))
    assert law.returns.tolist() == [-1.0, 2.0, 3.0]
    assert law.chances == pytest.approx([0.3, 0.1, 0.6])
    taus = (np.arange(200_000) + 0.5) / 200_000
    assert law.value(risk) == pytest.approx(law.quantile(risk(taus)).mean(), abs=1e-3)


def test_the_bandit_s_figures_are_those_on_paper():
    world = WORLDS["Quantail/RiskyBandit-v0"]()
    laws = solve(world).laws
    means = [laws[(0,), action].mean() for action in range(3)]
    assert means == pytest.approx([1.0, 1.3, 0.9])
    tails = [laws[(0,), action].value(CVaR(0.25)) for action in range(3)]
    assert tails == pytest.approx([1.0, (0.1 * -5 + 0.15 * 2) / 0.25, 0.0])
    choices = [
        world.actions[solve(world, risk).policy[(0,)]] for risk in (Neutral(), CVaR(0.1), Wang(0.75))
    ]
    assert choices == ["risky", "sure", "lottery"]


def way(world, policy):
    state, taken = world.states[0], []
    while state is not None:
        taken.append(world.actions[policy[state]])
        state = world.outcomes(state, policy[state])[0].state
    return taken


def test_along_the_cliff_is_best_on_average_and_above_it_is_best_in_the_tail():
    world = WORLDS["Quantail/WindyCliff-v0"]()
    neutral, careful = solve(world), solve(world, CVaR(0.1))
    assert way(world, neutral.policy) == ["on"] * 5
    assert way(world, careful.policy)[0] == "up"
    short, long = neutral.law((0, 0)), careful.law((0, 0))
    assert short.mean() > long.mean()
    assert short.value(CVaR(0.1)) < long.value(CVaR(0.1))
    assert len(long.returns) == 1


def test_the_distance_of_two_laws_is_the_area_between_them():
    rng = np.random.default_rng(0)
    one, other = rng.normal(0, 1, 500), rng.normal(0.5, 2, 500)
    expected = np.abs(np.sort(one) - np.sort(other)).mean()
    assert ExactLaw.of(one).distance(ExactLaw.of(other)) == pytest.approx(expected)
    assert ExactLaw.of(one).distance(ExactLaw.of(one)) == 0


def test_per_step_risk_is_not_the_static_risk_of_the_episode():
    """Some measure chooses a policy that is not the best for the whole episode's return."""
    found = []
    for name in ("Quantail/Chain-v0",):
        world = WORLDS[name]()
        for eta in np.linspace(0.05, 0.95, 19):
            risk = CVaR(float(eta))
            per_step = (
                follow(world, solve(world, risk, 1.0).policy, 1.0).law(world.states[0]).value(risk)
            )
            found.append(static_best(world, risk)[1] - per_step)
    assert min(found) >= -1e-9  # no policy of the state alone is better than the best one
    assert max(found) > 0.01
