"""Calibration by playing: predicted distributions, measured returns, and what can be compared."""

import json
import zlib

import gymnasium as gym
import numpy as np
import pytest

import quantail
from quantail.agents.agent import Agent
from quantail.envs import make
from quantail.envs.adapt import Adapter
from quantail.envs.ale import Ale, AleConfig
from quantail.envs.limits import take_off_limit
from quantail.envs.worlds import WORLDS, solve
from quantail.errors import QuantailError
from quantail.evaluation.calibration import calibrate, play
from quantail.evaluation.calibration.continuations import probe_states
from quantail.evaluation.calibration.play import Rollout, discounted_returns, known_steps, take_step
from quantail.evaluation.calibration.ranks import COVERAGE_TAUS
from quantail.evaluation.calibration.run import mismatch_remarks
from quantail.recipes import compose
from quantail.risk import CVaR, Neutral, parse_risk
from tests.helpers.agents import Endless, agent
from tests.helpers.runs import command

CHAIN = "Quantail/Chain-v0"
BANDIT = "Quantail/RiskyBandit-v0"


class Oracle(Agent):
    """An agent whose distributions are exact, or made wrong on purpose."""

    def __init__(self, name=CHAIN, wrong=lambda quantiles: quantiles):
        base = agent(name, "worlds")
        super().__init__(base.network, base.config, base.observation, base.actions, name, base.risk)
        self.world, self.wrong = WORLDS[name](), wrong
        self.solution = solve(self.world)
        self.policies = {}

    def state(self, observation):
        return self.world.states[int(np.argmax(observation))]

    def act(self, observation, risk=None, mask=None):
        measure = parse_risk(risk or self.risk)
        if measure not in self.policies:
            self.policies[measure] = solve(self.world, measure).policy
        return self.policies[measure][self.state(observation)]

    def quantiles(self, observation, taus):
        distributions = [
            np.stack(
                [
                    self.solution.distributions[self.state(one), action].quantile(taus)
                    for action in range(self.actions.count)
                ],
                axis=-1,
            )
            for one in observation
        ]
        return self.wrong(np.array(distributions))

    def unsorted_quantiles(self, observation, taus):
        return self.quantiles(observation, taus)


@pytest.mark.parametrize("name", WORLDS)
def test_an_exact_distribution_is_found_correct(name):
    found = calibrate(Oracle(name), episodes=400, states=2, continuations=200)
    low, high = found.coverage_interval()
    assert ((low - 0.03 <= COVERAGE_TAUS) & (high + 0.03 >= COVERAGE_TAUS)).all()
    assert found.miscalibration < 0.04
    assert found.judgement().kind == "true"
    below, above = found.bias_interval()
    assert below - 0.1 <= 0 <= above + 0.1
    assert found.crossing == 0
    for probe in found.probes:
        assert probe.distance < 2 * probe.noise_high + 0.05


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
def test_the_verdict_names_the_error_of_a_wrong_distribution(wrong, said):
    found = calibrate(Oracle(wrong=wrong), episodes=300, states=1, continuations=100)
    assert said in found.verdict()
    assert found.miscalibration > 0.08
    assert found.probes[0].distance > found.probes[0].noise_high > found.probes[0].noise


def test_an_inverted_quantile_function_has_full_crossing():
    """With the sign of the loss's indicator flipped, τ means 1 − τ."""
    found = calibrate(Oracle(wrong=lambda q: q[:, ::-1]), episodes=20, states=0)
    assert found.crossing == pytest.approx(1)
    assert calibrate(Oracle(), episodes=20, states=0).crossing == 0


@pytest.mark.parametrize(("name", "applies"), [("qr-dqn", True), ("fqf", True), ("c51", False)])
def test_crossing_is_measured_before_a_head_sorts_its_quantiles(name, applies):
    found = calibrate(agent(CHAIN, "worlds", agent=name), episodes=3, states=0)
    if applies:
        assert found.crossing > 0.2  # the quantiles of an untrained network are not ordered
    else:
        assert found.crossing is None
        assert any("does not apply" in note for note in found.table().notes)


def test_returns_are_discounted_and_stop_at_the_end_of_an_episode():
    assert discounted_returns([1.0, 2.0, 4.0], 0.5).tolist() == [1 + 1 + 1, 2 + 2, 4.0]
    assert discounted_returns([1.0, 2.0, 4.0], 0.5, [False, True, False], rest=8.0).tolist() == [
        2.0,
        2.0,
        8.0,
    ]


def test_intervals_widen_with_the_correlation_of_an_episode_s_steps():
    found = calibrate(Oracle(), episodes=100, states=0)
    low, high = found.coverage_interval()
    steps = sum(len(ranks) for ranks in found.ranks)
    middle = len(COVERAGE_TAUS) // 2
    naive = 2 * 1.96 * np.sqrt(0.25 / steps)
    assert high[middle] - low[middle] > 1.3 * naive


def test_rewards_are_those_that_the_agent_is_trained_on():
    mine = agent("ALE/Breakout-v5", "atari-paper", policy_samples=2, head_size=16)
    adapter = make("ALE/Breakout-v5", mine.config.environment)
    adapter.reset(seed=0)
    ends, raw = 0, []
    rng = np.random.default_rng(0)
    for _ in range(400):
        lives = adapter.unwrapped.ale.lives()
        step = take_step(mine, adapter, int(rng.integers(4)))
        raw.append(step.reward)
        if step.ends:
            ends += 1
            assert adapter.unwrapped.ale.lives() < lives or adapter.unwrapped.ale.game_over()
        if step.terminated:
            break
    assert ends >= 2  # lives
    assert max(raw) <= 1.0


def test_episodes_are_played_under_the_given_risk_measure():
    oracle = Oracle(BANDIT)
    averse = calibrate(oracle, episodes=40, states=1, continuations=20, risk="cvar:0.1")
    assert set(averse.returns) == {1.0}
    assert averse.risk == CVaR(0.1)
    constant = calibrate(Oracle(), episodes=2, states=10, continuations=20, risk="cvar:0.1")
    for probe in constant.probes:  # a reward of 1 per step, in continuations too
        assert probe.measured == pytest.approx(sum(0.99**day for day in range(5 - probe.step)))
    assert set(calibrate(oracle, episodes=40, states=0).returns) == {2.0, -5.0}
    assert any(
        "under neutral, but the episodes were played under cvar:0.1" in one for one in averse.remarks
    )


class RandomEnd(gym.Env):
    """Pays 1 per step and terminates with `probability`; its observation is constant."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    probability = 0.05
    game = "an attribute of its own"

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        over = bool(self.np_random.random() < self.probability)
        return np.zeros(1, np.float32), 1.0, over, False, {}


class ExactAgent(Agent):
    """Predicts the exact distribution of RandomEnd."""

    def __init__(self, env=RandomEnd, **changes):
        base = agent(env, n_step=1, **changes)
        super().__init__(base.network, base.config, base.observation, base.actions, env, base.risk)

    def act(self, observation, risk=None, mask=None):
        return 0

    def quantiles(self, observation, taus):
        lengths = np.ceil(np.log1p(-np.asarray(taus, float)) / np.log1p(-RandomEnd.probability))
        returns = (1 - self.config.learner.discount**lengths) / (1 - self.config.learner.discount)
        return np.tile(returns[None, :, None], (len(observation), 1, 2))


def test_a_time_limit_does_not_make_a_correct_distribution_look_wrong():
    found = calibrate(ExactAgent(max_episode_steps=20), episodes=300, states=3, continuations=100)
    assert found.judgement().kind == "true"
    assert abs(found.bias) < 1.5
    assert max(len(rollout.returns) for rollout in found.rollouts) == 20
    assert found.returns.max() > 30
    for probe in found.probes:
        assert probe.distance < 2 * probe.noise_high


class Truncating(RandomEnd):
    """Truncates its episodes itself, so there is no wrapper to remove."""

    longest = 20

    def reset(self, *, seed=None, options=None):
        self.played = 0
        return super().reset(seed=seed)

    def step(self, action):
        observation, reward, over, _, info = super().step(action)
        self.played += 1
        return observation, reward, over, self.played >= self.longest, info


class TruncatingLate(Truncating):
    longest = 500


def test_an_environment_that_truncates_early_is_refused_and_late_steps_do_not_count():
    with pytest.raises(QuantailError, match="would select the short ones"):
        calibrate(ExactAgent(Truncating), episodes=40, states=0)
    truncated = Rollout(0, 0, (), (), np.zeros((500, 2)), np.zeros(500), truncated_at=500)
    assert known_steps([truncated], 0.99) == 500 - 459 + 1
    assert known_steps([truncated], 1.0) == 0
    assert known_steps([Rollout(0, 0, (), (), np.zeros((5, 2)), np.zeros(5))], 0.99) is None


def test_a_state_whose_continuations_are_truncated_is_refused(monkeypatch):
    mine, adapter = ExactAgent(TruncatingLate), quantail.make(TruncatingLate)
    rollout = play.play_episode(mine, adapter, Neutral(), 0, 0, 1)
    monkeypatch.setattr(TruncatingLate, "longest", 3)
    (probe,) = probe_states(mine, adapter, Neutral(), [rollout], 1, 50, seed=0)
    assert probe.remark == "the environment truncates episodes itself"
    assert probe.measured is None


def test_an_endless_episode_is_played_until_the_remaining_discount_is_negligible():
    found = calibrate(agent(Endless, max_episode_steps=5, n_step=1), Endless, episodes=3, states=0)
    assert [len(rollout.returns) for rollout in found.rollouts] == [5, 5, 5]
    assert found.returns == pytest.approx(np.full(15, 100.0), rel=0.02)
    assert any("3 of 3 episodes had not ended after 464 steps" in one for one in found.remarks)


def test_a_time_limit_is_removed_from_any_wrapper():
    adapter = quantail.make("CartPole-v1")
    assert take_off_limit(adapter) == 500
    assert take_off_limit(adapter) is None
    wrapped = quantail.make(lambda: gym.wrappers.TimeLimit(gym.make("CartPole-v1"), 7))
    assert take_off_limit(wrapped) == 7


class Unseeded(RandomEnd):
    """Draws its observation from a generator that ignores the seed."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.random.random(1).astype(np.float32), {}


class Fixed(RandomEnd):
    """Deterministic: ten steps."""

    def reset(self, *, seed=None, options=None):
        self.left = 10
        return super().reset(seed=seed)

    def step(self, action):
        self.left -= 1
        return np.zeros(1, np.float32), 1.0, self.left == 0, False, {}


def test_states_that_cannot_be_compared_have_a_remark_instead_of_a_distance():
    for env, said in ((Unseeded, "led to another observation"), (Fixed, "deterministic from here on")):
        found = calibrate(ExactAgent(env), episodes=4, states=2, continuations=30)
        for probe in found.probes:
            assert said in probe.remark
            assert probe.distance is None
        assert said in found.probes_table().rows[0][-1]


def test_rare_randomness_is_not_taken_for_determinism():
    found = calibrate(Oracle("Quantail/WindyCliff-v0"), episodes=4, states=4, continuations=40)
    assert all(probe.distance is not None for probe in found.probes)


def test_continuations_start_in_the_same_state_with_fresh_randomness():
    found = calibrate(Oracle(), episodes=5, states=3, continuations=60)
    for probe in found.probes:
        rollout = found.rollouts[probe.episode]
        assert rollout.episode == probe.episode
        assert probe.predicted == pytest.approx(rollout.distributions[probe.step].mean())
        assert probe.noise > 0
    again = calibrate(Oracle(), episodes=5, states=3, continuations=60)
    assert again.probes == found.probes


def test_minatar_can_be_reseeded_within_an_episode():
    adapter = quantail.make("MinAtar/Breakout-v1")

    def played(seed):
        adapter.reset(seed=3)
        adapter.reseed(seed)
        assert not adapter.used_randomness()
        seen = [adapter.step(1)[0].tobytes() for _ in range(30)]
        assert adapter.used_randomness()
        return seen

    assert played(1) == played(1)
    assert any(played(1) != played(seed) for seed in range(2, 8))


class Lives(RandomEnd):
    """Three lives; each pays 1 per step for five steps."""

    def reset(self, *, seed=None, options=None):
        self.played = 0
        return super().reset(seed=seed)

    def step(self, action):
        self.played += 1
        lost = self.played % 5 == 0
        return np.zeros(1, np.float32), 1.0, self.played == 15, False, {"life_lost": lost}


def test_all_lives_belong_to_the_same_episode():
    mine = ExactAgent(Lives)
    adapter = Adapter(Lives(), 1, "lives", Ale(AleConfig(life_loss_ends=True)))
    rollout = play.play_episode(mine, adapter, Neutral(), 0, 0, 100)
    assert len(rollout.returns) == 15
    assert rollout.returns[:5] == pytest.approx(rollout.returns[5:10])
    assert rollout.returns[4] == rollout.returns[9] == 1.0
    assert rollout.returns[0] == pytest.approx(sum(0.99**step for step in range(5)))
    assert rollout.checksums[0] == zlib.crc32(np.zeros(1, np.float32).tobytes())


def test_remarks_say_when_the_distribution_is_not_that_of_the_played_policy():
    def remarks(preset="small", risk="neutral", **changes):
        return " ".join(mismatch_remarks(compose(preset, changes), parse_risk(risk)))

    assert remarks(n_step=1) == ""
    assert "n_step 3" in remarks(n_step=3)
    assert "Munchausen" in remarks(agent="m-iqn", n_step=1)
    assert "played under cvar:0.1" in remarks(n_step=1, risk="cvar:0.1")
    assert remarks(n_step=1, target_risk="cvar:0.1", risk="cvar:0.1") == ""
    assert "only the mean" in remarks(agent="dqn", risk="cvar:0.1")
    assert "cvar" not in remarks(agent="dqn", risk="cvar:0.1")


@pytest.mark.parametrize(("life_loss_ends", "count"), [(True, 1), (False, 0)])
def test_a_remark_says_that_a_lost_life_ends_a_return(life_loss_ends, count, breakout):
    mine = quantail.load(breakout)
    mine.config = mine.config.replace(life_loss_ends=life_loss_ends)
    found = calibrate(mine, episodes=2, states=0)
    assert sum("a lost life ends a return" in one for one in found.remarks) == count


def test_the_command_prints_the_verdict_and_saves_the_figures(cartpoles, tmp_path, capsys):
    words = ("--episodes", 4, "--states", 1, "--continuations", 3, "--out", tmp_path / "figure")
    assert command("calibrate", cartpoles / "iqn-0", *words) == 0
    said = " ".join(capsys.readouterr().out.split())  # titles are wrapped
    for word in (
        "is the predicted return distribution correct?",
        "checkpoint 200",
        "too few",
        "1-Wasserstein",
    ):
        assert word in said, word
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    saved = json.loads((tmp_path / "figure.json").read_text())
    assert saved["schema"] == 1
    assert saved["checkpoint"] == 200
    assert saved["episodes"] == 4
    assert saved["states"][0]["remark"] == "deterministic from here on"
    assert command("calibrate", cartpoles / "iqn-0", "--episodes", 1) == 2


def test_an_output_path_that_cannot_be_written_is_refused_before_playing(
    cartpoles, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("quantail.cli.calibrate.calibrate", lambda *a, **k: pytest.fail("it played"))
    assert command("calibrate", cartpoles / "iqn-0", "--out", tmp_path / "none" / "figure") == 2
    assert "writable folder" in capsys.readouterr().err


def test_the_last_checkpoint_is_calibrated_by_default(cartpoles, monkeypatch):
    checkpoints = []

    def loaded(run, checkpoint, **options):
        checkpoints.append(checkpoint)
        raise QuantailError("enough.")

    monkeypatch.setattr("quantail.cli.calibrate.load", loaded)
    command("calibrate", cartpoles / "iqn-0")
    command("calibrate", cartpoles / "iqn-0", "--checkpoint", "best")
    assert checkpoints == ["last", "best"]


@pytest.mark.parametrize(
    "arguments", [{"seed": -1}, {"seed": "x"}, {"episodes": 1}, {"states": -1}, {"continuations": 1}]
)
def test_invalid_arguments_raise_a_clear_error(arguments):
    with pytest.raises(QuantailError, match=f"{next(iter(arguments))} takes a whole number"):
        calibrate(Oracle(), **arguments)


def test_the_bias_is_the_mean_overestimation():
    found = calibrate(Oracle(wrong=lambda q: q + 3.0), episodes=200, states=0)
    assert found.bias == pytest.approx(3.0, abs=0.6)
    low, high = found.bias_interval()
    assert low < found.bias < high


def test_rewards_are_clipped_if_training_clips_them():
    clipped = calibrate(agent(CHAIN, "worlds", clip_rewards=0.5), episodes=20, states=0)
    assert clipped.returns.max() <= 0.5 * 5
    assert calibrate(agent(CHAIN, "worlds"), episodes=20, states=0).returns.max() > 0.5 * 5


@pytest.mark.parametrize("batch_size", [1, 2, 5])
def test_distributions_do_not_depend_on_the_batch_size(monkeypatch, batch_size):
    whole = calibrate(Oracle(), episodes=4, states=0)
    monkeypatch.setattr(play, "BATCH_SIZE", batch_size)
    for rollout, other in zip(
        whole.rollouts, calibrate(Oracle(), episodes=4, states=0).rollouts, strict=True
    ):
        assert rollout.distributions.shape == other.distributions.shape == (5, play.ATOMS)
        assert np.array_equal(rollout.distributions, other.distributions)
