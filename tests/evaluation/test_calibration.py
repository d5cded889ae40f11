"""Calibration by playing: what is predicted, what came, and what may be compared."""

import json
import zlib

import gymnasium as gym
import numpy as np
import pytest

from quantail.acting.agent import Agent
from quantail.envs import make
from quantail.envs.limits import take_off_limit
from quantail.envs.worlds import WORLDS, solve
from quantail.errors import QuantailError
from quantail.evaluation.calibration import calibrate, play
from quantail.evaluation.calibration.continuations import play_on
from quantail.evaluation.calibration.play import Trail, discounted, known_steps, take
from quantail.evaluation.calibration.ranks import LEVELS
from quantail.evaluation.calibration.run import remarks_on
from quantail.recipes import compose
from quantail.risk import CVaR, Neutral, parse_risk
from tests.helpers.agents import Endless, agent
from tests.helpers.runs import command

CHAIN = "Quantail/Chain-v0"
BANDIT = "Quantail/RiskyBandit-v0"


class Oracle(Agent):
    """An agent whose laws are the exact ones, or made wrong on purpose."""

    def __init__(self, name=CHAIN, wrong=lambda quantiles: quantiles):
        base = agent(name, "worlds")
        super().__init__(base.network, base.settings, base.observation, base.actions, name, base.risk)
        self.world, self.wrong = WORLDS[name](), wrong
        self.solution = solve(self.world)
        self.policies = {}

    def state(self, observation):
        return self.world.states[int(np.argmax(observation))]

    def act(self, observation, risk=None):
        measure = parse_risk(risk or self.risk)
        if measure not in self.policies:
            self.policies[measure] = solve(self.world, measure).policy
        return self.policies[measure][self.state(observation)]

    def quantiles(self, observation, taus):
        laws = [
            np.stack(
                [
                    self.solution.laws[self.state(one), action].quantile(taus)
                    for action in range(self.actions.count)
                ],
                axis=-1,
            )
            for one in observation
        ]
        return self.wrong(np.array(laws))


@pytest.mark.parametrize("name", WORLDS)
def test_a_true_law_is_found_true(name):
    found = calibrate(Oracle(name), episodes=400, states=2, continuations=200)
    low, high = found.coverage_interval()
    assert ((low - 0.03 <= LEVELS) & (high + 0.03 >= LEVELS)).all()
    assert found.miscalibration < 0.04
    assert found.judgement().kind == "true"
    below, above = found.bias_interval()
    assert below - 0.1 <= 0 <= above + 0.1
    assert found.crossing == 0
    for spot in found.spots:
        assert spot.distance < 2 * spot.noise_high + 0.05


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda q: q + 3.0, "too high"),
        (lambda q: q - 3.0, "too low"),
        (
            lambda q: q.mean(axis=1, keepdims=True) + 0.3 * (q - q.mean(axis=1, keepdims=True)),
            "too narrow",
        ),
        (
            lambda q: q.mean(axis=1, keepdims=True) + 3.0 * (q - q.mean(axis=1, keepdims=True)),
            "too wide",
        ),
    ],
)
def test_a_wrong_law_is_called_what_it_is(wrong, said):
    found = calibrate(Oracle(wrong=wrong), episodes=300, states=1, continuations=100)
    assert said in found.verdict()
    assert found.miscalibration > 0.08
    assert found.spots[0].distance > found.spots[0].noise_high > found.spots[0].noise


def test_an_inverted_quantile_function_is_wholly_out_of_order():
    """With the sign of the loss's indicator flipped, τ means 1 − τ."""
    found = calibrate(Oracle(wrong=lambda q: q[:, ::-1]), episodes=20, states=0)
    assert found.crossing == pytest.approx(1)
    assert calibrate(Oracle(), episodes=20, states=0).crossing == 0


@pytest.mark.parametrize(("name", "applies"), [("qr-dqn", True), ("fqf", True), ("c51", False)])
def test_the_order_of_quantiles_is_read_before_a_head_sorts_them(name, applies):
    found = calibrate(agent(CHAIN, "worlds", agent=name), episodes=3, states=0)
    if applies:
        assert found.crossing > 0.2  # an untrained network has no order
    else:
        assert found.crossing is None
        assert any("does not apply" in note for note in found.sheet().notes)


def test_returns_are_discounted_backwards_and_nothing_is_carried_over_an_end():
    assert discounted([1.0, 2.0, 4.0], 0.5).tolist() == [1 + 1 + 1, 2 + 2, 4.0]
    assert discounted([1.0, 2.0, 4.0], 0.5, [False, True, False], rest=8.0).tolist() == [2.0, 2.0, 8.0]


def test_intervals_widen_with_the_correlation_of_an_episode_s_steps():
    found = calibrate(Oracle(), episodes=100, states=0)
    low, high = found.coverage_interval()
    steps = sum(len(ranks) for ranks in found.ranks)
    middle = len(LEVELS) // 2
    naive = 2 * 1.96 * np.sqrt(0.25 / steps)
    assert high[middle] - low[middle] > 1.3 * naive


def test_rewards_are_those_that_the_agent_learns_from():
    mine = agent("ALE/Breakout-v5", "atari-paper", policy_samples=2, head_size=16)
    lane = make("ALE/Breakout-v5", mine.settings)
    lane.reset(seed=0)
    ends, raw = 0, []
    rng = np.random.default_rng(0)
    for _ in range(400):
        lives = lane.unwrapped.ale.lives()
        step = take(mine, lane, int(rng.integers(4)))
        raw.append(step.reward)
        if step.ends:
            ends += 1
            assert lane.unwrapped.ale.lives() < lives or lane.unwrapped.ale.game_over()
        if step.over:
            break
    assert ends >= 2  # lives
    assert max(raw) <= 1.0


def test_the_risk_asked_for_is_the_one_that_plays():
    oracle = Oracle(BANDIT)
    careful = calibrate(oracle, episodes=40, states=1, continuations=20, risk="cvar:0.1")
    assert set(careful.returns) == {1.0}
    assert careful.risk == CVaR(0.1)
    steady = calibrate(Oracle(), episodes=2, states=10, continuations=20, risk="cvar:0.1")
    for spot in steady.spots:  # a wage of 1 each day, in continuations too
        assert spot.played == pytest.approx(sum(0.99**day for day in range(5 - spot.step)))
    assert set(calibrate(oracle, episodes=40, states=0).returns) == {2.0, -5.0}
    assert any("under neutral, and the policy under cvar:0.1 played" in one for one in careful.remarks)


class Luck(gym.Env):
    """Pays 1 a step and ends by chance, as `chance` says; shows nothing."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    chance = 0.05
    game = "an attribute of its own"

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        over = bool(self.np_random.random() < self.chance)
        return np.zeros(1, np.float32), 1.0, over, False, {}


class Knowing(Agent):
    """Knows the exact law of Luck."""

    def __init__(self, env=Luck, **changes):
        base = agent(env, n_step=1, **changes)
        super().__init__(base.network, base.settings, base.observation, base.actions, env, base.risk)

    def act(self, observation, risk=None):
        return 0

    def quantiles(self, observation, taus):
        lengths = np.ceil(np.log1p(-np.asarray(taus, float)) / np.log1p(-Luck.chance))
        returns = (1 - self.settings.discount**lengths) / (1 - self.settings.discount)
        return np.tile(returns[None, :, None], (len(observation), 1, 2))


def test_a_time_limit_does_not_make_a_true_law_false():
    found = calibrate(Knowing(max_episode_steps=20), episodes=300, states=3, continuations=100)
    assert found.judgement().kind == "true"
    assert abs(found.bias) < 1.5
    assert max(len(trail.returns) for trail in found.trails) == 20
    assert found.returns.max() > 30
    for spot in found.spots:
        assert spot.distance < 2 * spot.noise_high


class Cutting(Luck):
    """Cuts its episodes itself, where no wrapper can be taken off."""

    longest = 20

    def reset(self, *, seed=None, options=None):
        self.played = 0
        return super().reset(seed=seed)

    def step(self, action):
        observation, reward, over, _, info = super().step(action)
        self.played += 1
        return observation, reward, over, self.played >= self.longest, info


class CuttingLate(Cutting):
    longest = 500


def test_an_environment_that_cuts_too_soon_is_refused_and_late_steps_do_not_count():
    with pytest.raises(QuantailError, match="without choosing the short ones"):
        calibrate(Knowing(Cutting), episodes=40, states=0)
    cut = Trail(0, 0, (), (), np.zeros((500, 2)), np.zeros(500), cut_at=500)
    assert known_steps([cut], 0.99) == 500 - 459 + 1
    assert known_steps([cut], 1.0) == 0
    assert known_steps([Trail(0, 0, (), (), np.zeros((5, 2)), np.zeros(5))], 0.99) is None


def test_a_state_whose_continuations_are_cut_is_refused(monkeypatch):
    mine, lane = Knowing(CuttingLate), make(CuttingLate)
    trail = play.play(mine, lane, Neutral(), 0, 0, 1)
    monkeypatch.setattr(CuttingLate, "longest", 3)
    (spot,) = play_on(mine, lane, Neutral(), [trail], 1, 50, seed=0)
    assert spot.remark == "the environment itself cuts episodes"
    assert spot.played is None


def test_an_endless_game_is_played_until_what_is_left_weighs_little():
    found = calibrate(agent(Endless, max_episode_steps=5, n_step=1), Endless, episodes=3, states=0)
    assert [len(trail.returns) for trail in found.trails] == [5, 5, 5]
    assert found.returns == pytest.approx(np.full(15, 100.0), rel=0.02)
    assert any("3 of 3 episodes had not ended after 464 steps" in one for one in found.remarks)


def test_a_limit_is_taken_off_wherever_it_is():
    lane = make("CartPole-v1")
    assert take_off_limit(lane) == 500
    assert take_off_limit(lane) is None
    wrapped = make(lambda: gym.wrappers.TimeLimit(gym.make("CartPole-v1"), 7))
    assert take_off_limit(wrapped) == 7


class Unseeded(Luck):
    """Its chance is its own, and shows."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.random.random(1).astype(np.float32), {}


class Fixed(Luck):
    """No chance at all: ten steps."""

    def reset(self, *, seed=None, options=None):
        self.left = 10
        return super().reset(seed=seed)

    def step(self, action):
        self.left -= 1
        return np.zeros(1, np.float32), 1.0, self.left == 0, False, {}


def test_what_cannot_be_compared_is_said_in_place_of_a_distance():
    for env, said in ((Unseeded, "led elsewhere"), (Fixed, "no chance from here on")):
        found = calibrate(Knowing(env), episodes=4, states=2, continuations=30)
        for spot in found.spots:
            assert said in spot.remark
            assert spot.distance is None
        assert said in found.spots_sheet().rows[0][-1]


def test_a_rare_chance_is_not_taken_for_none():
    found = calibrate(Oracle("Quantail/WindyCliff-v0"), episodes=4, states=4, continuations=40)
    assert all(spot.distance is not None for spot in found.spots)


def test_continuations_have_other_luck_and_begin_in_the_same_state():
    found = calibrate(Oracle(), episodes=5, states=3, continuations=60)
    for spot in found.spots:
        trail = found.trails[spot.episode]
        assert trail.episode == spot.episode
        assert spot.predicted == pytest.approx(trail.laws[spot.step].mean())
        assert spot.noise > 0
    again = calibrate(Oracle(), episodes=5, states=3, continuations=60)
    assert again.spots == found.spots


def test_minatar_s_luck_can_be_renewed():
    lane = make("MinAtar/Breakout-v1")

    def played(luck):
        lane.reset(seed=3)
        lane.reseed(luck)
        assert not lane.chance_drawn()
        seen = [lane.step(1)[0].tobytes() for _ in range(30)]
        assert lane.chance_drawn()
        return seen

    assert played(1) == played(1)
    assert any(played(1) != played(luck) for luck in range(2, 8))


class Lives(Luck):
    """Three lives of which each pays 1 a step for five steps."""

    def reset(self, *, seed=None, options=None):
        self.played = 0
        return super().reset(seed=seed)

    def step(self, action):
        self.played += 1
        lost = self.played % 5 == 0
        return np.zeros(1, np.float32), 1.0, self.played == 15, False, {"life_lost": lost}


def test_later_lives_are_steps_of_the_same_game():
    mine = Knowing(Lives)
    mine.settings = mine.settings.with_changes({"life_loss_ends": True})
    lane = make(Lives)
    trail = play.play(mine, lane, Neutral(), 0, 0, 100)
    assert len(trail.returns) == 15
    assert trail.returns[:5] == pytest.approx(trail.returns[5:10])
    assert trail.returns[4] == trail.returns[9] == 1.0
    assert trail.returns[0] == pytest.approx(sum(0.99**step for step in range(5)))
    assert trail.seen[0] == zlib.crc32(np.zeros(1, np.float32).tobytes())


def test_laws_that_are_not_of_the_played_policy_are_noted():
    def remarks(preset="small", risk="neutral", **changes):
        return " ".join(remarks_on(compose(preset, changes), parse_risk(risk)))

    assert remarks(n_step=1) == ""
    assert "n_step 3" in remarks(n_step=3)
    assert "Munchausen" in remarks(agent="m-iqn", n_step=1)
    assert "under cvar:0.1 played" in remarks(n_step=1, risk="cvar:0.1")
    assert remarks(n_step=1, target_risk="cvar:0.1", risk="cvar:0.1") == ""
    assert "whole games" in remarks("atari-paper")
    assert "mean alone" in remarks(agent="dqn", risk="cvar:0.1")
    assert "cvar" not in remarks(agent="dqn", risk="cvar:0.1")


def test_the_command_tells_the_verdict_and_keeps_the_figures(cartpoles, tmp_path, capsys):
    words = ("--episodes", 4, "--states", 1, "--continuations", 3, "--out", tmp_path / "figure")
    assert command("calibrate", cartpoles / "iqn-0", *words) == 0
    said = capsys.readouterr().out
    for word in ("is the predicted distribution true?", "checkpoint 200", "too few", "1-Wasserstein"):
        assert word in said, word
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    kept = json.loads((tmp_path / "figure.json").read_text())
    assert kept["schema"] == 1
    assert kept["checkpoint"] == 200
    assert kept["episodes"] == 4
    assert kept["states"][0]["remark"] == "no chance from here on"
    assert command("calibrate", cartpoles / "iqn-0", "--episodes", 1) == 2


def test_where_figures_cannot_go_is_said_before_playing(cartpoles, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("quantail.cli.calibrate.calibrate", lambda *a, **k: pytest.fail("it played"))
    assert command("calibrate", cartpoles / "iqn-0", "--out", tmp_path / "none" / "figure") == 2
    assert "out takes STEM in a folder" in capsys.readouterr().err


def test_the_last_checkpoint_is_calibrated_unless_told(cartpoles, monkeypatch):
    asked = []

    def loaded(run, checkpoint, **options):
        asked.append(checkpoint)
        raise QuantailError("enough.")

    monkeypatch.setattr("quantail.cli.calibrate.load", loaded)
    command("calibrate", cartpoles / "iqn-0")
    command("calibrate", cartpoles / "iqn-0", "--checkpoint", "best")
    assert asked == ["last", "best"]


@pytest.mark.parametrize(
    "asked", [{"seed": -1}, {"seed": "x"}, {"episodes": 1}, {"states": -1}, {"continuations": 1}]
)
def test_bad_questions_get_one_sentence(asked):
    with pytest.raises(QuantailError, match=f"{next(iter(asked))} takes a whole number"):
        calibrate(Oracle(), **asked)


def test_the_bias_is_what_was_predicted_too_much():
    found = calibrate(Oracle(wrong=lambda q: q + 3.0), episodes=200, states=0)
    assert found.bias == pytest.approx(3.0, abs=0.6)
    low, high = found.bias_interval()
    assert low < found.bias < high


def test_rewards_are_clipped_where_learning_clips_them():
    clipped = calibrate(agent(CHAIN, "worlds", clip_rewards=0.5), episodes=20, states=0)
    assert clipped.returns.max() <= 0.5 * 5
    assert calibrate(agent(CHAIN, "worlds"), episodes=20, states=0).returns.max() > 0.5 * 5


@pytest.mark.parametrize("together", [1, 2, 5])
def test_laws_are_the_same_however_many_are_predicted_at_once(monkeypatch, together):
    whole = calibrate(Oracle(), episodes=4, states=0)
    monkeypatch.setattr(play, "TOGETHER", together)
    for trail, other in zip(whole.trails, calibrate(Oracle(), episodes=4, states=0).trails, strict=True):
        assert trail.laws.shape == other.laws.shape == (5, play.ATOMS)
        assert np.array_equal(trail.laws, other.laws)
