"""Calibration sees a true law as true, and each way of being wrong as what it is."""

import numpy as np
import pytest
from runs import command
from test_evaluate import Endless, agent

from quantail.acting.agent import Agent
from quantail.envs import make
from quantail.envs.worlds import WORLDS, solve
from quantail.errors import QuantailError
from quantail.evaluation import calibration
from quantail.evaluation.calibration import (
    LEVELS,
    _learned,
    _over_episodes,
    calibrate,
    discounted,
    rank,
)
from quantail.viewing.calibration import calibration_figure

CHAIN = "Quantail/Chain-v0"


class Oracle(Agent):
    """An agent whose laws are the exact ones, or made wrong on purpose."""

    def __init__(self, name=CHAIN, wrong=lambda quantiles: quantiles):
        base = agent(name, "worlds")
        super().__init__(base.network, base.settings, base.observation, base.actions, name, base.risk)
        self.world, self.wrong = WORLDS[name](), wrong
        self.solution = solve(self.world)

    def state(self, observation):
        return self.world.states[int(np.argmax(observation))]

    def act(self, observation, risk=None):
        return self.solution.policy[self.state(observation)]

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
    assert "no sign" in found.verdict()
    below, above = found.bias_interval()
    assert below - 0.1 <= 0 <= above + 0.1
    assert found.crossing == 0
    for spot in found.spots:
        assert spot.distance < 3 * spot.noise + 0.05


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
    assert found.spots[0].distance > 3 * found.spots[0].noise


def test_an_inverted_quantile_function_crosses_everywhere():
    """With the sign of the loss's indicator flipped, τ means 1 − τ."""
    found = calibrate(Oracle(wrong=lambda q: q[:, ::-1]), episodes=20, states=0)
    right = calibrate(Oracle(), episodes=20, states=0)
    assert right.crossing == 0
    rises = np.mean([(np.diff(trail.laws, axis=1) != 0).mean() for trail in found.trails])
    assert found.crossing == pytest.approx(rises)
    assert rises > 0


def test_ranks_of_a_law_s_own_draws_are_uniform_for_atoms_and_for_smooth_laws():
    rng = np.random.default_rng(0)
    for atoms in (np.repeat([0.0, 1.0, 5.0], [100, 60, 40]), np.sort(rng.normal(0, 1, 200))):
        laws = np.tile(atoms, (4000, 1))
        ranks = rank(laws, rng.choice(atoms, 4000), 1e-9, rng)
        for level in (0.1, 0.5, 0.9):
            assert (ranks <= level).mean() == pytest.approx(level, abs=0.03)


def test_a_return_outside_its_law_has_an_extreme_rank():
    laws = np.tile(np.linspace(0, 1, 200), (2, 1))
    low, high = rank(laws, np.array([-5.0, 5.0]), 0.0, np.random.default_rng(0))
    assert low < 0.006
    assert high == 1.0


def test_returns_are_discounted_backwards():
    assert discounted([1.0, 2.0, 4.0], 0.5).tolist() == [1 + 1 + 1, 2 + 2, 4.0]


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
        _, reward, over, _ = _learned(mine, lane, int(rng.integers(4)))
        raw.append(reward)
        if over:
            ends += 1
            assert lane.unwrapped.ale.lives() < lives or lane.unwrapped.ale.game_over()
        if lane.unwrapped.ale.game_over():
            break
    assert ends >= 2  # lives
    assert max(raw) <= 1.0


def test_continuations_have_other_luck_and_begin_in_the_same_state():
    found = calibrate(Oracle(), episodes=5, states=3, continuations=60)
    for spot in found.spots:
        trail = found.trails[spot.episode]
        assert spot.predicted == pytest.approx(trail.laws[spot.step].mean())
        assert spot.noise > 0
    again = calibrate(Oracle(), episodes=5, states=3, continuations=60)
    assert again.spots == found.spots


def test_minatar_s_luck_can_be_renewed():
    lane = make("MinAtar/Breakout-v1")

    def played(luck):
        lane.reset(seed=3)
        lane.reseed(luck)
        return [lane.step(1)[0].tobytes() for _ in range(30)]

    assert played(1) == played(1)
    assert any(played(1) != played(luck) for luck in range(2, 8))


def test_episodes_that_are_cut_are_left_out_and_without_others_it_is_refused():
    with pytest.raises(QuantailError, match="cut by a time limit"):
        calibrate(agent(Endless, max_episode_steps=5), Endless, episodes=3)


def test_the_figure_and_the_command_tell_the_verdict(cartpoles, tmp_path, capsys):
    figure = calibration_figure(calibrate(Oracle(), episodes=20, states=0))
    assert "true" in figure.axes[0].get_title()
    words = ("--episodes", 4, "--states", 1, "--continuations", 3, "--out", tmp_path / "figure")
    assert command("calibrate", cartpoles / "iqn-0", *words) == 0
    said = capsys.readouterr().out
    assert "is the predicted distribution true?" in said
    assert "1-Wasserstein" in said
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert command("calibrate", cartpoles / "iqn-0", "--episodes", 1) == 2


def test_the_bias_is_what_was_predicted_too_much():
    found = calibrate(Oracle(wrong=lambda q: q + 3.0), episodes=200, states=0)
    assert found.bias == pytest.approx(3.0, abs=0.6)
    low, high = found.bias_interval()
    assert low < found.bias < high


def test_long_and_short_episodes_count_by_their_steps():
    counts = np.array([1, 50, 3, 200])
    low, high = _over_episodes(0.25 * counts[:, None], counts)
    assert low[0] == pytest.approx(0.25)
    assert high[0] == pytest.approx(0.25)


def test_rewards_are_clipped_where_learning_clips_them():
    clipped = calibrate(agent(CHAIN, "worlds", clip_rewards=0.5), episodes=20, states=0)
    assert max(trail.returns.max() for trail in clipped.trails) <= 0.5 * 5
    plain = calibrate(agent(CHAIN, "worlds"), episodes=20, states=0)
    assert max(trail.returns.max() for trail in plain.trails) > 0.5 * 5


@pytest.mark.parametrize("together", [1, 2, 5])
def test_laws_are_the_same_however_many_are_predicted_at_once(monkeypatch, together):
    whole = calibrate(Oracle(), episodes=4, states=0)
    monkeypatch.setattr(calibration, "TOGETHER", together)
    for trail, other in zip(whole.trails, calibrate(Oracle(), episodes=4, states=0).trails, strict=True):
        assert trail.laws.shape == other.laws.shape == (5, calibration.ATOMS)
        assert np.array_equal(trail.laws, other.laws)
