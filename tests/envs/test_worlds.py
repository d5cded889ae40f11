"""Worlds of which everything is known: is it so?"""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import quantail
from quantail.envs import make
from quantail.envs.make import default_preset
from quantail.envs.names import picture_legend
from quantail.envs.worlds import WORLDS, ExactLaw, solve
from quantail.envs.worlds.exact import follow, one_deviation, static_best
from quantail.errors import QuantailError
from quantail.registration import NAMES, world_id
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


@pytest.mark.parametrize(
    "words",
    [
        "import gymnasium, quantail; gymnasium.make('Quantail/WindyCliff-v0')",
        "import quantail, gymnasium; gymnasium.make('Quantail/WindyCliff-v0')",
        "import gymnasium; gymnasium.make('quantail:Quantail/WindyCliff-v0')",
        "import quantail.envs, gymnasium; gymnasium.make_vec('Quantail/Chain-v0', num_envs=2)",
    ],
)
def test_gymnasium_makes_a_world_in_a_process_that_has_only_imported_quantail(words):
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_ids_that_are_registered_are_those_of_the_worlds():
    assert list(WORLDS) == [world_id(name) for name in NAMES]
    assert all(type(gym.make(name).unwrapped) is world for name, world in WORLDS.items())


@pytest.mark.parametrize("state", [(9, 9), [0, 0], None, "start", 0, (0,)])
def test_an_episode_begins_in_a_state_that_there_is(state):
    world = WORLDS["Quantail/WindyCliff-v0"]()
    assert world.reset(options={"state": (2, 1)})[0] == world.number((2, 1))
    with pytest.raises(QuantailError, match=r"state takes one of the world's 15 states, .*, not "):
        world.reset(options={"state": state})
    assert world.state == (2, 1)


@pytest.mark.parametrize("action", [-1, 7, 3, "up", 0.5, None])
def test_a_step_takes_an_action_that_there_is(action):
    world = WORLDS["Quantail/WindyCliff-v0"]()
    world.reset(seed=0)
    with pytest.raises(QuantailError, match=r"action takes one of 0 \(on\), 1 \(up\), 2 \(down\), not"):
        world.step(action)
    assert world.state == (0, 0)
    world.step(np.int64(1))
    assert world.state == (0, 1)


def test_after_the_end_there_is_no_step():
    world = WORLDS["Quantail/RiskyBandit-v0"]()
    world.reset(seed=0)
    world.step(0)
    with pytest.raises(QuantailError, match="the episode is over"):
        world.step(0)


def test_a_picture_has_words(name):
    assert picture_legend(make(name))
    assert picture_legend(make("CartPole-v1")) == ""


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
        _, best = static_best(world, Neutral())
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


def test_the_cliff_s_figures_are_those_on_paper():
    world = WORLDS["Quantail/WindyCliff-v0"]()
    short = solve(world, discount=1.0).laws[(0, 0), 0]
    # Four steps may end in a fall that pays −7 in all; the fifth arrives.
    assert short.returns == pytest.approx([-10, -9, -8, -7, -5])
    assert short.chances == pytest.approx([0.05 * 0.95**3, 0.05 * 0.95**2, 0.05 * 0.95, 0.05, 0.95**4])
    above = solve(world, CVaR(0.1), 1.0).law((0, 0))
    assert (above.returns.tolist(), above.chances.tolist()) == ([-6.0], [1.0])


def test_the_chain_s_figures_are_those_on_paper():
    world = WORLDS["Quantail/Chain-v0"]()
    last = solve(world).laws[(4,), 1]
    assert last.returns.tolist() == [-1.0, 1.5, 4.0]
    assert last.chances == pytest.approx([0.3, 0.5, 0.2])
    assert last.value(CVaR(0.9)) == pytest.approx((0.3 * -1 + 0.5 * 1.5 + 0.1 * 4) / 0.9)
    careful, gambles = CVaR(0.9), dict.fromkeys(world.states, 1)
    assert follow(world, gambles, 1.0).law((0,)).mean() == pytest.approx(5 * 1.25)
    assert follow(world, gambles, 1.0).law((0,)).value(careful) == pytest.approx(5.47, abs=0.005)
    assert solve(world, careful, 1.0).law((0,)).returns.tolist() == [5.0]
    assert static_best(world, careful, 1.0) == (gambles, pytest.approx(5.47, abs=0.005))


def test_the_figures_of_stopping_are_those_on_paper():
    world = WORLDS["Quantail/Stopping-v0"]()
    laws = solve(world, discount=1.0).laws
    assert laws[(0, 0), 1].returns.tolist() == [2.0]  # 4, less the strike of 2
    assert laws[(3, 3), 1].returns.tolist() == [5.0]
    assert laws[(4, 0), 1].returns.tolist() == [0.0]  # never less than nothing
    last = laws[(5, 4), 0]  # a price of 7: on the last day it is sold at 8 or at 6
    assert last.returns.tolist() == [4.0, 6.0]
    assert last.chances == pytest.approx([0.47, 0.53])
    assert solve(world, CVaR(0.1)).law((0, 0)).returns.tolist() == [2.0]


def test_laws_are_discounted_as_asked_and_by_the_world_s_own_unless_told():
    world = WORLDS["Quantail/Chain-v0"]()
    wages = dict.fromkeys(world.states, 0)
    for discount, expected in ((0.5, 1.9375), (1.0, 5.0), (None, (1 - 0.99**5) / 0.01)):
        assert follow(world, wages, discount).law((0,)).mean() == pytest.approx(expected)
        assert solve(world, CVaR(0.1), discount).law((0,)).mean() == pytest.approx(expected)
        assert static_best(world, CVaR(0.1), discount)[1] >= expected - 1e-9


def test_following_the_best_policy_has_the_laws_of_the_solution(name):
    world = WORLDS[name]()
    solution = solve(world, CVaR(0.25))
    followed = follow(world, solution.policy)
    for key, law in solution.laws.items():
        assert followed.laws[key].distance(law) == 0


def test_one_deviation_comes_by_what_an_episode_with_one_may_meet():
    world = WORLDS["Quantail/WindyCliff-v0"]()
    policy = solve(world).policy
    pairs = one_deviation(world, policy)
    assert {pair for pair in pairs if pair[0][1] == 0} == {
        ((column, 0), action) for column in range(5) for action in range(3)
    }
    above = {pair for pair in pairs if pair[0][1] == 1}
    assert above == {((column, 1), policy[column, 1]) for column in range(5)}
    assert not {pair for pair in pairs if pair[0][1] == 2}  # takes two


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
            found.append(static_best(world, risk, 1.0)[1] - per_step)
    assert min(found) >= -1e-9  # no policy of the state alone is better than the best one
    assert max(found) > 0.01
