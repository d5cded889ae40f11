"""The session of a tab and its commands, without a browser."""

from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

import quantail
from quantail import registry
from quantail.envs.worlds.exact import follow
from quantail.envs.worlds.games import RiskyBandit
from quantail.errors import QuantailError
from quantail.risk import CPW, MEASURES, CVaR, Neutral, Norm, Pow, Slider, Wang, parse_risk
from quantail.viewing.live.player import NEGLIGIBLE, EpisodeTrace, Player
from quantail.viewing.live.registry import MAX_AGENTS, Offer, RunRegistry
from quantail.viewing.live.session import SPEEDS, Session, _contrast, _rounded
from quantail.viewing.live.sliders import OWN, make_measure, measures, name_of
from quantail.viewing.scenes import TAUS, densities, make_scene, tau_weights


@pytest.fixture
def session(bandit):
    made = Session(Offer([bandit]))
    yield made
    made.close()


@pytest.fixture
def cartpole(cartpoles):
    made = Session(Offer([cartpoles / "iqn-0", cartpoles / "iqn-1"]))
    yield made
    made.close()


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_the_actual_return_is_known_once_it_has_ended_or_the_rest_is_negligible(discount):
    generator = np.random.default_rng(0)
    trace = EpisodeTrace(
        predicted=[0.0] * 60,
        rewards=generator.normal(size=60).tolist(),
        ends=[step in (20, 35) for step in range(60)],
    )
    returns, known = trace.actual_returns(discount)
    for step in range(60):
        end = next((e for e in (20, 35) if e >= step), 59)
        terms = [discount ** (later - step) * trace.rewards[later] for later in range(step, end + 1)]
        assert returns[step] == pytest.approx(sum(terms))
        assert known[step] == (step <= 35 or discount ** (60 - step) < NEGLIGIBLE)
    assert not known[59]


def test_tau_weights_are_the_weights_of_the_quantiles_in_the_value():
    distribution = np.sort(np.random.default_rng(0).normal(size=100))
    for risk in (Neutral(), CVaR(0.05), Wang(-0.75), Pow(2.0), CPW(0.71), Norm(3)):
        weights = tau_weights(risk)
        assert weights.mean() == pytest.approx(1)
        # Compare with the definition: the mean of Z at β(τ) for many uniform τ.
        taus = (np.arange(200_000) + 0.5) / 200_000
        expected = distribution[np.minimum((risk(taus) * 100).astype(int), 99)].mean()
        assert (weights * distribution).mean() == pytest.approx(expected, abs=0.01)
    assert tau_weights(CVaR(0.05)).tolist() == pytest.approx([20.0] * 5 + [0.0] * 95)


def test_densities_are_those_of_the_distribution_and_a_constant_return_is_a_peak():
    normal = stats.norm(1.0, 2.0)
    distribution = np.stack([normal.ppf(TAUS), np.full(100, 3.0)], axis=1)
    grid = np.linspace(-7, 9, 161)
    found = densities(distribution, grid)
    assert found.shape == (161, 2)
    assert (found.sum(axis=0) * 0.1) == pytest.approx([1, 1], abs=0.02)
    assert found[:, 0] == pytest.approx(normal.pdf(grid), abs=0.02)
    assert grid[found[:, 1].argmax()] == pytest.approx(3.0)


def test_a_new_risk_measure_applies_to_the_next_decision(session):
    player = session.players[0]
    assert session.show()["panes"][0]["names"][player.scene.chosen] == "risky"
    session.do({"do": "risk", "pane": 0, "name": "cvar", "eta": 0.05})
    shown = session.show()["panes"][0]
    assert player.steps == 0
    assert shown["names"][shown["chosen"]] == "sure"
    assert shown["values"] == pytest.approx(player.agent.values(0, CVaR(0.05)).tolist(), abs=1e-3)
    assert shown["means"] == pytest.approx(player.agent.values(0, "neutral").tolist(), abs=1e-3)
    session.do({"do": "step"})
    assert player.score == 1.0  # the reward of the safe action
    session.do({"do": "risk", "pane": 0, "name": "neutral", "eta": None})
    session.do({"do": "restart", "seed": 1})
    assert session.show()["panes"][0]["chosen"] == 1


def test_two_sides_play_the_same_seed_and_wait_for_each_other(cartpole):
    cartpole.do({"do": "compare", "on": True})
    cartpole.do({"do": "agent", "pane": 1, "run": 0, "checkpoint": None})
    one, other = cartpole.players
    assert np.array_equal(one.observation, other.observation)
    other.set_risk(one.risk)
    while not cartpole.over:
        cartpole.step()
        assert np.array_equal(one.observation, other.observation)
    assert one.score == other.score > 0
    one.over, steps = "", one.steps
    one.observation, _ = one.env.reset(seed=9)
    cartpole.step()
    assert (one.steps, other.steps) == (steps + 1, steps)


def test_a_finished_episode_stays_for_a_second_before_the_next_seed_starts(session):
    session.do({"do": "speed", "speed": 4})
    session.step()
    assert session.over
    for _ in range(4):
        session.step()
        assert (session.seed, session.over) == (1, True)
    session.step()
    assert (session.seed, session.over) == (2, False)


def test_the_next_episode_follows_the_seed_last_asked_for_and_stops_at_the_largest(cartpole):
    cartpole.do({"do": "restart", "seed": 41})
    cartpole.do({"do": "next"})
    assert cartpole.seed == 42
    cartpole.do({"do": "restart", "seed": 2**31 - 1})
    cartpole.do({"do": "next"})
    assert cartpole.seed == 2**31 - 1


def test_an_episode_follows_the_greedy_policy_of_the_agent(cartpole):
    player = cartpole.players[0]
    cartpole.do({"do": "restart", "seed": 5})
    env = quantail.make("CartPole-v1", player.agent.config)
    observation, _ = env.reset(seed=5)
    score, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(player.agent.act(observation))
        score, over = score + reward, terminated or truncated
        cartpole.do({"do": "step"})
    assert player.score == score
    assert player.over


def test_a_world_shows_the_exact_returns_of_the_policy_that_the_agent_has_learned(session):
    player = session.players[0]
    world, greedy = RiskyBandit(), player.agent.act(0, "neutral")
    solution = follow(world, {(0,): greedy}, player.agent.config.learner.discount)
    expected = [solution.distributions[(0,), action].quantile(TAUS).tolist() for action in range(3)]
    for measure in ({"name": "neutral"}, {"name": "cvar", "eta": 0.05}):
        session.do({"do": "risk", "pane": 0, **measure})
        shown = session.show()["panes"][0]
        assert np.asarray(shown["exact"]) == pytest.approx(np.asarray(expected))
        assert shown["target"] == "neutral"
    learned = player.scene.distribution[:, player.scene.chosen]
    distance = np.abs(learned - expected[player.scene.chosen]).mean()
    assert shown["distance"] == pytest.approx(distance, abs=1e-3)
    session.do({"do": "view", "density": True})
    assert np.asarray(session.show()["panes"][0]["exact"]).shape == (3, 120)
    session.do({"do": "step"})
    assert "exact" not in session.show()["panes"][0]  # the episode is over


def test_only_an_environment_with_a_known_model_shows_exact_returns(cartpole):
    assert "exact" not in cartpole.show()["panes"][0]


def test_quantiles_are_shown_sorted_with_the_share_of_those_that_crossed(cartpoles):
    agent = quantail.load(cartpoles / "iqn-0")
    observation, _ = quantail.make("CartPole-v1", agent.config).reset(seed=3)
    raw = agent.unsorted_quantiles(observation, TAUS)
    scene = make_scene(agent, observation, Neutral(), None)
    assert scene.distribution == pytest.approx(np.sort(raw, axis=0))
    assert scene.crossing == pytest.approx((np.diff(raw, axis=0) < 0).mean())
    cannot_cross = quantail.load(cartpoles / "dqn-0")
    assert make_scene(cannot_cross, observation, Neutral(), None).crossing is None


def test_only_the_agents_that_were_used_last_stay_in_memory(cartpoles):
    registry = RunRegistry([cartpoles / "iqn-0"])
    first = registry.agent(0, "200")
    for number in range(MAX_AGENTS):
        registry._remember(number + 1, first)
        assert registry.agent(0, "200") is first
    assert len(registry._agents) == MAX_AGENTS


def test_another_checkpoint_continues_the_current_episode(cartpole):
    player = cartpole.players[0]
    for _ in range(3):
        cartpole.do({"do": "step"})
    names = [row["name"] for row in cartpole.registry.checkpoints(0)]
    other = next(name for name in names if name != str(player.agent.checkpoint))
    cartpole.do({"do": "agent", "pane": 0, "run": 0, "checkpoint": other})
    assert (player.steps, str(player.agent.checkpoint)) == (3, other)
    assert player.scene.means == pytest.approx(player.agent.values(player.observation, "neutral"))


def test_an_environment_without_a_renderer_shows_only_the_distributions(cartpoles):
    class WithoutRenderer(gym.Wrapper):
        def render(self):
            raise NotImplementedError

    agent = quantail.load(cartpoles / "iqn-0")
    player = Player(agent, Neutral(), lambda: WithoutRenderer(gym.make("CartPole-v1")))
    player.step()
    assert player.scene.picture is None
    assert player.scene.distribution.shape == (100, 2)


@pytest.mark.parametrize("name", [name for name, one in MEASURES.items() if one.slider])
def test_a_slider_stays_within_the_range_of_its_measure(name):
    slider = MEASURES[name].slider
    for eta in (slider.least, slider.start, slider.most):
        assert make_measure(name, eta).name == name


def test_every_measure_with_a_slider_and_the_mean_are_listed_with_those_from_outside(monkeypatch):
    @dataclass(frozen=True)
    class Half(CVaR):
        slider = Slider(0.1, 0.5, 0.1, 0.2, "averse", "less so")

    monkeypatch.setattr(registry, "_registered", {kind: {} for kind in registry.KINDS})
    registry.register("risk", "half", Half)
    names = [one["name"] for one in measures(Neutral())]
    assert names == ["neutral", *(name for name, one in MEASURES.items() if one.slider), "half"]
    assert measures(Half(0.1))[-1]["slider"]["most"] == 0.5
    assert name_of(make_measure("half", 0.3)) == "half"
    assert name_of(make_measure("neutral", None)) == "neutral"
    prospect = parse_risk("prospect:2,0")
    assert (name_of(prospect), measures(prospect)[-1]["summary"]) == (OWN, "prospect:2,0")


def test_a_second_player_of_one_run_plays_by_another_measure():
    class AlsoTheMean(Neutral):
        name = "as good as neutral"

    for own, other in ((AlsoTheMean(), CVaR), (CVaR(0.1), Neutral)):
        assert type(_contrast(own)) is other


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ([], "unknown command"),
        ({}, "unknown command"),
        ({"do": "__class__"}, "unknown command"),
        ({"do": ["risk"]}, "unknown command"),
        ({"do": "risk", "pane": 0, "name": "os:system", "eta": 1}, "risk takes neutral, cpw, "),
        ({"do": "risk", "pane": 0, "name": "cvar", "eta": "much"}, "η takes a number, not 'much'"),
        ({"do": "risk", "pane": 0, "name": "cvar", "eta": 7}, "out of range"),
        ({"do": "risk", "pane": 3, "name": "neutral"}, "pane takes a whole number"),
        ({"do": "agent", "pane": 0, "run": 5}, "run takes a whole number from 0 to 0"),
        ({"do": "agent", "pane": 0, "run": 0, "checkpoint": "../../x"}, "no longer exists"),
        ({"do": "agent", "pane": 0, "run": 0, "checkpoint": {}}, "no longer exists"),
        ({"do": "restart", "seed": -1}, "seed takes a whole number"),
        ({"do": "restart", "seed": 1e10}, "seed takes a whole number from 0 to 2147483647"),
        ({"do": "speed", "speed": 10**9}, "speed takes 1, 2, 4, 8, 15, 30 or 60, not"),
        ({"do": "speed", "speed": []}, "speed takes 1, 2, 4, 8, 15, 30 or 60, not"),
    ],
)
def test_invalid_commands_are_refused_with_a_clear_error(session, message, says):
    with pytest.raises(QuantailError, match=says):
        session.do(message)
    assert session.speed in SPEEDS


def test_runs_of_two_environments_and_a_folder_without_a_run_are_refused(bandit, cartpoles, tmp_path):
    with pytest.raises(QuantailError, match="runs of one environment"):
        RunRegistry([bandit, cartpoles / "iqn-0"])
    with pytest.raises(QuantailError, match="there is no run"):
        RunRegistry([tmp_path / "nothing"])


def test_the_trace_has_predicted_means_and_training_rewards_and_the_score_is_raw(cartpoles):
    agent = quantail.load(cartpoles / "iqn-0")
    agent.config = agent.config.replace(clip_rewards=0.25)
    player = Player(agent, CVaR(0.1))
    expected = [float(player.scene.means[player.scene.chosen])]
    player.step()
    expected.append(float(player.scene.means[player.scene.chosen]))
    player.step()
    assert player.trace.predicted == expected
    assert player.trace.rewards == [0.25, 0.25]
    assert player.score == 2.0
    returns, _ = player.trace.actual_returns(0.5)
    assert returns.tolist() == [0.375, 0.25]
    assert player.trace.actual_returns(0.5, begin=1)[0].tolist() == [0.25]


def test_the_run_s_custom_measure_can_be_selected_again(cartpoles):
    agent = quantail.load(cartpoles / "iqn-0", risk=lambda tau: tau**2)
    session = Session(Offer([cartpoles / "iqn-0"]))
    session.players[0].agent, own = agent, agent.risk
    assert session.hello()["measures"][-1]["name"] == OWN
    session.do({"do": "risk", "pane": 0, "name": OWN})
    assert session.players[0].risk == own
    assert session.show()["panes"][0]["measure"] == OWN
    session.do({"do": "risk", "pane": 0, "name": "neutral"})
    assert session.show()["panes"][0]["measure"] == "neutral"
    session.close()


def test_rounding_keeps_numbers_distinct():
    for middle in (0.0, -1000.0, 1e6):
        numbers = middle + np.linspace(-1, 1, 100)
        assert len(set(_rounded(numbers))) == 100
    assert _rounded([0.0, 0.0]) == [0.0, 0.0]
