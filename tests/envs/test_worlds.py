"""The worlds are valid environments, and their exact return distributions are correct."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy import stats

import quantail
from quantail.distributions import ReturnDistribution
from quantail.envs import find_family
from quantail.envs.worlds import WORLDS, exact_distribution, solve
from quantail.envs.worlds.exact import follow, one_deviation, static_best
from quantail.errors import QuantailError
from quantail.registration import NAMES, world_id
from quantail.risk import CPW, CVaR, Neutral, Norm, Pow, Wang, parse_risk

MEASURES = [Neutral(), CVaR(0.1), CVaR(0.25), Wang(-0.75), Wang(0.75), CPW(0.71), Pow(-2.0), Norm(3)]


@pytest.fixture(params=WORLDS)
def name(request):
    return request.param


def play(world, policy, episodes, discount, state=None):
    """Play a policy and return the discounted returns of its episodes."""
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
    "code",
    [
        "import gymnasium, quantail; gymnasium.make('Quantail/WindyCliff-v0')",
        "import quantail, gymnasium; gymnasium.make('Quantail/WindyCliff-v0')",
        "import gymnasium; gymnasium.make('quantail:Quantail/WindyCliff-v0')",
        "import quantail.envs, gymnasium; gymnasium.make_vec('Quantail/Chain-v0', num_envs=2)",
    ],
)
def test_gymnasium_makes_a_world_in_a_process_that_has_only_imported_quantail(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_registered_ids_are_those_of_the_worlds():
    assert list(WORLDS) == [world_id(name) for name in NAMES]
    assert all(type(gym.make(name).unwrapped) is world for name, world in WORLDS.items())


@pytest.mark.parametrize("state", [(9, 9), [0, 0], None, "start", 0, (0,)])
def test_reset_refuses_a_state_that_does_not_exist(state):
    world = WORLDS["Quantail/WindyCliff-v0"]()
    assert world.reset(options={"state": (2, 1)})[0] == world.number((2, 1))
    with pytest.raises(QuantailError, match=r"state takes one of the world's 15 states, .*, not "):
        world.reset(options={"state": state})
    assert world.state == (2, 1)


@pytest.mark.parametrize("action", [-1, 7, 3, "up", 0.5, None])
def test_step_refuses_an_action_that_does_not_exist(action):
    world = WORLDS["Quantail/WindyCliff-v0"]()
    world.reset(seed=0)
    with pytest.raises(QuantailError, match=r"action takes one of 0 \(on\), 1 \(up\), 2 \(down\), not"):
        world.step(action)
    assert world.state == (0, 0)
    world.step(np.int64(1))
    assert world.state == (0, 1)


def test_a_step_after_the_end_is_refused():
    world = WORLDS["Quantail/RiskyBandit-v0"]()
    world.reset(seed=0)
    world.step(0)
    with pytest.raises(QuantailError, match="the episode is over"):
        world.step(0)


def test_rendered_images_have_a_legend(name):
    assert quantail.make(name).legend()
    assert quantail.make("CartPole-v1").legend() == ""


def test_a_world_is_a_valid_gymnasium_environment_that_agents_can_use(name):
    env = quantail.make(name, render_mode="rgb_array")
    check_env(gym.make(name, render_mode="rgb_array").unwrapped, skip_render_check=True)
    assert find_family(name).preset == "worlds"
    observation, _ = env.reset(seed=0)
    assert observation.sum() == 1
    assert env.render().dtype == np.uint8
    assert env.render().shape[2] == 3


def test_outcome_probabilities_sum_to_one_and_lead_to_existing_states(name):
    world = WORLDS[name]()
    for state in world.states:
        for action in range(len(world.actions)):
            outcomes = world.outcomes(state, action)
            assert sum(outcome.probability for outcome in outcomes) == pytest.approx(1)
            assert all(outcome.probability > 0 for outcome in outcomes)
            assert all(outcome.state is None or outcome.state in world.states for outcome in outcomes)


@pytest.mark.parametrize("risk", MEASURES, ids=str)
def test_the_exact_distribution_is_that_of_played_episodes(name, risk):
    world = WORLDS[name]()
    solution = solve(world, risk)
    distribution = solution.distribution(world.states[0])
    returns = play(world, solution.policy, 3000, world.discount)
    spread = float(distribution.std())
    assert ReturnDistribution.of(returns).wasserstein(distribution) < 0.1 * spread + 1e-9
    assert float(distribution.mean()) == pytest.approx(
        returns.mean(), abs=5 * spread / np.sqrt(3000) + 1e-9
    )


def test_the_distribution_of_an_action_is_that_of_taking_it_and_then_following_the_policy():
    world = WORLDS["Quantail/WindyCliff-v0"]()
    solution = solve(world, CVaR(0.1))
    state = (3, 0)
    for action in range(3):
        first = {**solution.policy, state: action}  # a state is never visited twice
        returns = play(world, first, 3000, world.discount, state)
        assert ReturnDistribution.of(returns).wasserstein(solution.distributions[state, action]) < 0.25


def test_the_neutral_policy_has_the_best_mean_of_all_policies():
    for name in ("Quantail/RiskyBandit-v0", "Quantail/Chain-v0"):
        world = WORLDS[name]()
        _, best = static_best(world, Neutral())
        assert float(solve(world).distribution(world.states[0]).mean()) == pytest.approx(best)


def test_in_every_state_the_policy_maximises_the_distorted_value(name):
    world = WORLDS[name]()
    for risk in MEASURES:
        solution = solve(world, risk)
        for state, action in solution.policy.items():
            values = [
                float(risk.value(solution.distributions[state, other]))
                for other in range(len(world.actions))
            ]
            assert values[action] == max(values)


@pytest.mark.parametrize("risk", MEASURES, ids=str)
def test_a_value_is_the_mean_of_quantiles_at_distorted_fractions(risk):
    distribution = exact_distribution(np.array([3.0, -1.0, 2.0, 3.0]), np.array([0.2, 0.3, 0.1, 0.4]))
    assert distribution.atoms.tolist() == [-1.0, 2.0, 3.0]
    assert distribution.probs.tolist() == pytest.approx([0.3, 0.1, 0.6])
    taus = (np.arange(200_000) + 0.5) / 200_000
    assert float(risk.value(distribution)) == pytest.approx(
        float(distribution.quantile(risk(taus)).mean()), abs=1e-3
    )


def test_the_bandits_values_match_hand_calculation():
    world = WORLDS["Quantail/RiskyBandit-v0"]()
    distributions = solve(world).distributions
    means = [float(distributions[(0,), action].mean()) for action in range(3)]
    assert means == pytest.approx([1.0, 1.3, 0.9])
    tails = [float(CVaR(0.25).value(distributions[(0,), action])) for action in range(3)]
    assert tails == pytest.approx([1.0, (0.1 * -5 + 0.15 * 2) / 0.25, 0.0])
    choices = [
        world.actions[solve(world, risk).policy[(0,)]] for risk in (Neutral(), CVaR(0.1), Wang(0.75))
    ]
    assert choices == ["risky", "sure", "lottery"]


def test_the_cliffs_values_match_hand_calculation():
    world = WORLDS["Quantail/WindyCliff-v0"]()
    short = solve(world, discount=1.0).distributions[(0, 0), 0]
    # Each of the first four steps may end in a fall, with a reward of −7; the fifth reaches the goal.
    assert short.atoms.tolist() == pytest.approx([-10, -9, -8, -7, -5])
    assert short.probs.tolist() == pytest.approx(
        [0.05 * 0.95**3, 0.05 * 0.95**2, 0.05 * 0.95, 0.05, 0.95**4]
    )
    above = solve(world, CVaR(0.1), 1.0).distribution((0, 0))
    assert (above.atoms.tolist(), above.probs.tolist()) == ([-6.0], [1.0])


def test_the_chains_values_match_hand_calculation():
    world = WORLDS["Quantail/Chain-v0"]()
    last = solve(world).distributions[(4,), 1]
    assert last.atoms.tolist() == [-1.0, 1.5, 4.0]
    assert last.probs.tolist() == pytest.approx([0.3, 0.5, 0.2])
    assert float(CVaR(0.9).value(last)) == pytest.approx((0.3 * -1 + 0.5 * 1.5 + 0.1 * 4) / 0.9)
    averse, gambles = CVaR(0.9), dict.fromkeys(world.states, 1)
    assert float(follow(world, gambles, 1.0).distribution((0,)).mean()) == pytest.approx(5 * 1.25)
    assert float(averse.value(follow(world, gambles, 1.0).distribution((0,)))) == pytest.approx(
        5.47, abs=0.005
    )
    assert solve(world, averse, 1.0).distribution((0,)).atoms.tolist() == [5.0]
    assert static_best(world, averse, 1.0) == (gambles, pytest.approx(5.47, abs=0.005))


def test_the_values_of_stopping_match_hand_calculation():
    world = WORLDS["Quantail/Stopping-v0"]()
    distributions = solve(world, discount=1.0).distributions
    assert distributions[(0, 0), 1].atoms.tolist() == [2.0]  # 4 minus the strike of 2
    assert distributions[(3, 3), 1].atoms.tolist() == [5.0]
    assert distributions[(4, 0), 1].atoms.tolist() == [0.0]  # never negative
    last = distributions[(5, 4), 0]  # from a price of 7, it is sold at 8 or at 6 after the last day
    assert last.atoms.tolist() == [4.0, 6.0]
    assert last.probs.tolist() == pytest.approx([0.47, 0.53])
    assert solve(world, CVaR(0.1)).distribution((0, 0)).atoms.tolist() == [2.0]


def test_distributions_use_the_given_discount_or_that_of_the_world():
    world = WORLDS["Quantail/Chain-v0"]()
    wages = dict.fromkeys(world.states, 0)
    for discount, expected in ((0.5, 1.9375), (1.0, 5.0), (None, (1 - 0.99**5) / 0.01)):
        assert float(follow(world, wages, discount).distribution((0,)).mean()) == pytest.approx(expected)
        assert float(solve(world, CVaR(0.1), discount).distribution((0,)).mean()) == pytest.approx(
            expected
        )
        assert static_best(world, CVaR(0.1), discount)[1] >= expected - 1e-9


def test_following_the_optimal_policy_gives_the_distributions_of_the_solution(name):
    world = WORLDS[name]()
    solution = solve(world, CVaR(0.25))
    followed = follow(world, solution.policy)
    for key, distribution in solution.distributions.items():
        assert followed.distributions[key].wasserstein(distribution) == 0


def test_one_deviation_returns_the_pairs_that_an_episode_with_one_deviation_may_visit():
    world = WORLDS["Quantail/WindyCliff-v0"]()
    policy = solve(world).policy
    pairs = one_deviation(world, policy)
    assert {pair for pair in pairs if pair[0][1] == 0} == {
        ((column, 0), action) for column in range(5) for action in range(3)
    }
    above = {pair for pair in pairs if pair[0][1] == 1}
    assert above == {((column, 1), policy[column, 1]) for column in range(5)}
    assert not {pair for pair in pairs if pair[0][1] == 2}  # takes two deviations


def path(world, policy):
    """Return the names of the policy's actions if the first outcome always happens."""
    state, actions = world.states[0], []
    while state is not None:
        actions.append(world.actions[policy[state]])
        state = world.outcomes(state, policy[state])[0].state
    return actions


def test_the_path_along_the_cliff_is_best_on_average_and_the_one_above_is_best_in_the_tail():
    world = WORLDS["Quantail/WindyCliff-v0"]()
    neutral, averse = solve(world), solve(world, CVaR(0.1))
    assert path(world, neutral.policy) == ["on"] * 5
    assert path(world, averse.policy)[0] == "up"
    short, long = neutral.distribution((0, 0)), averse.distribution((0, 0))
    assert short.mean() > long.mean()
    assert CVaR(0.1).value(short) < CVaR(0.1).value(long)
    assert len(long.atoms) == 1


def test_the_distance_of_two_distributions_is_the_area_between_them():
    rng = np.random.default_rng(0)
    one, other = rng.normal(0, 1, 500), rng.normal(0.5, 2, 500)
    expected = np.abs(np.sort(one) - np.sort(other)).mean()
    assert float(ReturnDistribution.of(one).wasserstein(ReturnDistribution.of(other))) == pytest.approx(
        expected
    )
    assert ReturnDistribution.of(one).wasserstein(ReturnDistribution.of(one)) == 0


def test_per_step_risk_is_not_the_static_risk_of_the_episode():
    """Some risk measure chooses a policy that is not the best for the whole episode's return."""
    gaps = []
    for name in ("Quantail/Chain-v0",):
        world = WORLDS[name]()
        for eta in np.linspace(0.05, 0.95, 19):
            risk = CVaR(float(eta))
            followed = follow(world, solve(world, risk, 1.0).policy, 1.0)
            per_step = float(risk.value(followed.distribution(world.states[0])))
            gaps.append(static_best(world, risk, 1.0)[1] - per_step)
    assert min(gaps) >= -1e-9  # no stationary policy is better than the best one
    assert max(gaps) > 0.01


def _w(probability):
    """What wang:-1 makes of the probability of at least so much."""
    return stats.norm.sf(stats.norm.isf(probability) + 1)


@pytest.mark.parametrize(
    ("risk", "values"),
    [
        ("pow:-2", [1.0, 0.99**3 + 4 * 0.1**3, 0.11**3, 5 * 0.1**3]),
        ("wang:-1", [1.0, _w(0.99) + 4 * _w(0.1), _w(0.11), 5 * _w(0.1)]),
    ],
)
def test_a_distortion_takes_the_sure_million_and_then_the_gamble_as_people_do(risk, values):
    """Allais' choices. The pairs differ by a common part, so no expected utility prefers both."""
    world, measure = WORLDS["Quantail/Allais-v0"](), parse_risk(risk)
    solution = solve(world, measure, 1.0)
    assert (solution.policy[1,], solution.policy[2,]) == (0, 1)
    found = [
        float(measure.value(solution.distributions[(pair,), action]))
        for pair in (1, 2)
        for action in (0, 1)
    ]
    assert found == pytest.approx(values, abs=1e-6)


@pytest.mark.parametrize("risk", ["neutral", "exp-utility:0.3", "exp-utility:2", "prospect:2.25,0"])
def test_an_expected_utility_decides_both_of_allais_pairs_alike(risk):
    world, measure = WORLDS["Quantail/Allais-v0"](), parse_risk(risk)
    solution = solve(world, measure, 1.0)
    gains = [
        float(measure.value(solution.distributions[(pair,), 1]))
        - float(measure.value(solution.distributions[(pair,), 0]))
        for pair in (1, 2)
    ]
    assert gains[0] == pytest.approx(gains[1])  # 0.1 U(5) + 0.01 U(0) − 0.11 U(1)
    assert solution.policy[1,] == solution.policy[2,]
