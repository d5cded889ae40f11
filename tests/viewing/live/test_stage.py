"""What a tab shows, and what its controls do, without a browser."""

import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

import quantail
from quantail.errors import QuantailError
from quantail.risk import CPW, CVaR, Neutral, Norm, Pow, Wang
from quantail.viewing.live.knobs import KNOBS, OWN, turned
from quantail.viewing.live.player import FORGOTTEN, Player, Trace
from quantail.viewing.live.shelf import Shelf
from quantail.viewing.live.stage import SPEEDS, Stage, _plain
from quantail.viewing.scenes import TAUS, densities, level_weights


@pytest.fixture
def stage(bandit):
    made = Stage(Shelf([bandit]))
    yield made
    made.close()


@pytest.fixture
def cartpole(cartpoles):
    made = Stage(Shelf([cartpoles / "iqn-0", cartpoles / "iqn-1"]))
    yield made
    made.close()


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_the_return_that_came_is_the_sum_up_to_its_end_and_known_once_the_rest_is_forgotten(discount):
    generator = np.random.default_rng(0)
    trace = Trace(
        predicted=[0.0] * 60,
        rewards=generator.normal(size=60).tolist(),
        ends=[step in (20, 35) for step in range(60)],
    )
    returns, known = trace.came(discount)
    for step in range(60):
        end = next((e for e in (20, 35) if e >= step), 59)
        terms = [discount ** (later - step) * trace.rewards[later] for later in range(step, end + 1)]
        assert returns[step] == pytest.approx(sum(terms))
        assert known[step] == (step <= 35 or discount ** (60 - step) < FORGOTTEN)
    assert not known[59]


def test_the_shade_is_the_weight_of_each_level_in_the_value():
    law = np.sort(np.random.default_rng(0).normal(size=100))
    for risk in (Neutral(), CVaR(0.05), Wang(-0.75), Pow(2.0), CPW(0.71), Norm(3)):
        weights = level_weights(risk)
        assert weights.mean() == pytest.approx(1)
        # Against the definition: the mean of Z at β(τ) for many uniform τ.
        levels = (np.arange(200_000) + 0.5) / 200_000
        drawn = law[np.minimum((risk(levels) * 100).astype(int), 99)].mean()
        assert (weights * law).mean() == pytest.approx(drawn, abs=0.01)
    assert level_weights(CVaR(0.05)).tolist() == pytest.approx([20.0] * 5 + [0.0] * 95)


def test_densities_are_those_of_the_law_and_a_sure_return_is_a_peak():
    normal = stats.norm(1.0, 2.0)
    law = np.stack([normal.ppf(TAUS), np.full(100, 3.0)], axis=1)
    grid = np.linspace(-7, 9, 161)
    found = densities(law, grid)
    assert found.shape == (161, 2)
    assert (found.sum(axis=0) * 0.1) == pytest.approx([1, 1], abs=0.02)
    assert found[:, 0] == pytest.approx(normal.pdf(grid), abs=0.02)
    assert grid[found[:, 1].argmax()] == pytest.approx(3.0)


def test_a_turn_of_the_risk_acts_at_once_on_the_decision_that_is_due(stage):
    player = stage.players[0]
    assert stage.show()["panes"][0]["names"][player.scene.chosen] == "risky"
    stage.do({"do": "risk", "pane": 0, "name": "cvar", "eta": 0.05})
    shown = stage.show()["panes"][0]
    assert player.steps == 0
    assert shown["names"][shown["chosen"]] == "sure"
    assert shown["values"] == pytest.approx(player.agent.values(0, CVaR(0.05)).tolist(), abs=1e-3)
    assert shown["means"] == pytest.approx(player.agent.values(0, "neutral").tolist(), abs=1e-3)
    stage.do({"do": "step"})
    assert player.score == 1.0  # what is sure
    stage.do({"do": "risk", "pane": 0, "name": "neutral", "eta": None})
    stage.do({"do": "restart", "seed": 1})
    assert stage.show()["panes"][0]["chosen"] == 1


def test_two_sides_play_the_same_seed_and_one_waits_for_the_other(cartpole):
    cartpole.do({"do": "compare", "on": True})
    cartpole.do({"do": "agent", "pane": 1, "run": 0, "checkpoint": None})
    one, other = cartpole.players
    assert np.array_equal(one.observation, other.observation)
    other.turn(one.risk)
    while not cartpole.over:
        cartpole.step()
        assert np.array_equal(one.observation, other.observation)
    assert one.score == other.score > 0
    one.over, steps = "", one.steps
    one.observation, _ = one.env.reset(seed=9)
    cartpole.step()
    assert (one.steps, other.steps) == (steps + 1, steps)


def test_an_episode_that_is_over_stays_a_second_and_then_the_next_seed_begins(stage):
    stage.do({"do": "speed", "speed": 4})
    stage.step()
    assert stage.over
    for _ in range(4):
        stage.step()
        assert (stage.seed, stage.over) == (1, True)
    stage.step()
    assert (stage.seed, stage.over) == (2, False)


def test_an_episode_is_that_of_the_agent_s_own_greedy_policy(cartpole):
    player = cartpole.players[0]
    cartpole.do({"do": "restart", "seed": 5})
    env = quantail.make("CartPole-v1", player.agent.settings)
    observation, _ = env.reset(seed=5)
    score, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(player.agent.act(observation))
        score, over = score + reward, terminated or truncated
        cartpole.do({"do": "step"})
    assert player.score == score
    assert player.over


def test_another_checkpoint_takes_over_where_the_episode_stands(cartpole):
    player = cartpole.players[0]
    for _ in range(3):
        cartpole.do({"do": "step"})
    names = [row["name"] for row in cartpole.shelf.checkpoints(0)]
    other = next(name for name in names if name != str(player.agent.checkpoint))
    cartpole.do({"do": "agent", "pane": 0, "run": 0, "checkpoint": other})
    assert (player.steps, str(player.agent.checkpoint)) == (3, other)
    assert player.scene.means == pytest.approx(player.agent.values(player.observation, "neutral"))


def test_an_environment_without_a_renderer_has_the_distributions_alone(cartpoles):
    class Blind(gym.Wrapper):
        def render(self):
            raise NotImplementedError

    agent = quantail.load(cartpoles / "iqn-0")
    player = Player(agent, Neutral(), lambda: Blind(gym.make("CartPole-v1")))
    player.step()
    assert player.scene.picture is None
    assert player.scene.law.shape == (100, 2)


@pytest.mark.parametrize("name", KNOBS)
def test_a_knob_turns_from_end_to_end_within_what_its_measure_takes(name):
    knob = KNOBS[name]
    for eta in (knob.least, knob.start, knob.most):
        assert turned(name, eta).name == name


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ([], "something that there is not"),
        ({}, "something that there is not"),
        ({"do": "__class__"}, "something that there is not"),
        ({"do": ["risk"]}, "something that there is not"),
        ({"do": "risk", "pane": 0, "name": "os:system", "eta": 1}, "risk takes neutral or one of"),
        ({"do": "risk", "pane": 0, "name": "cvar", "eta": "0.1"}, "risk takes neutral or one of"),
        ({"do": "risk", "pane": 0, "name": "cvar", "eta": 7}, "out of range"),
        ({"do": "risk", "pane": 3, "name": "neutral"}, "pane takes a whole number"),
        ({"do": "agent", "pane": 0, "run": 5}, "run takes a whole number from 0 to 0"),
        ({"do": "agent", "pane": 0, "run": 0, "checkpoint": "../../x"}, "no longer kept"),
        ({"do": "agent", "pane": 0, "run": 0, "checkpoint": {}}, "no longer kept"),
        ({"do": "restart", "seed": -1}, "seed takes a whole number"),
        ({"do": "restart", "seed": 1e9}, "seed takes a whole number"),
        ({"do": "speed", "speed": 10**9}, "speed takes one of"),
        ({"do": "speed", "speed": []}, "speed takes one of"),
    ],
)
def test_what_no_control_asks_for_is_refused_in_one_sentence(stage, asked, says):
    with pytest.raises(QuantailError, match=says):
        stage.do(asked)
    assert stage.speed in SPEEDS


def test_runs_of_two_environments_and_a_folder_without_a_run_are_refused(bandit, cartpoles, tmp_path):
    with pytest.raises(QuantailError, match="runs of one environment"):
        Shelf([bandit, cartpoles / "iqn-0"])
    with pytest.raises(QuantailError, match="there is no run"):
        Shelf([tmp_path / "nothing"])


def test_the_strip_has_the_predicted_mean_and_rewards_as_learned_and_the_score_is_raw(cartpoles):
    agent = quantail.load(cartpoles / "iqn-0")
    agent.settings = agent.settings.with_changes({"clip_rewards": 0.25})
    player = Player(agent, CVaR(0.1))
    expected = [float(player.scene.means[player.scene.chosen])]
    player.step()
    expected.append(float(player.scene.means[player.scene.chosen]))
    player.step()
    assert player.trace.predicted == expected
    assert player.trace.rewards == [0.25, 0.25]
    assert player.score == 2.0
    returns, _ = player.trace.came(0.5)
    assert returns.tolist() == [0.375, 0.25]
    assert player.trace.came(0.5, begin=1)[0].tolist() == [0.25]


def test_the_run_s_own_map_can_be_left_and_taken_again(cartpoles):
    agent = quantail.load(cartpoles / "iqn-0", risk=lambda tau: tau**2)
    stage = Stage(Shelf([cartpoles / "iqn-0"]))
    stage.players[0].agent, own = agent, agent.risk
    assert stage.hello()["measures"][-1]["name"] == OWN
    stage.do({"do": "risk", "pane": 0, "name": OWN})
    assert stage.players[0].risk == own
    assert stage.show()["panes"][0]["measure"] == OWN
    stage.do({"do": "risk", "pane": 0, "name": "neutral"})
    assert stage.show()["panes"][0]["measure"] == "neutral"
    stage.close()


def test_numbers_keep_the_digits_by_which_they_differ():
    for middle in (0.0, -1000.0, 1e6):
        numbers = middle + np.linspace(-1, 1, 100)
        assert len(set(_plain(numbers))) == 100
    assert _plain([0.0, 0.0]) == [0.0, 0.0]
