"""Every agent, end to end: a tiny run that is resumed, loaded and evaluated under risk measures."""

import signal

import gymnasium as gym
import numpy as np
import pytest
from safetensors.numpy import load_file

import quantail as q
from quantail.networks.heads import HEADS
from quantail.recipes import AGENTS
from quantail.replay import Replay
from quantail.training.support import SupportWatch
from tests.helpers.runs import Listening, command, flags, kill_when, quick, rows, same_learning


@pytest.mark.parametrize("agent", AGENTS)
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(agent, tmp_path):
    settings = quick(agent)
    if AGENTS[agent].parts.get("sampler") == "prioritized":
        settings["importance_steps"] = 300  # otherwise β would reach 1 after the first 200 steps
    whole = q.train("CartPole-v1", out=tmp_path / "whole", steps=300, **settings)
    q.train("CartPole-v1", out=tmp_path / "half", steps=200, **settings)
    q.resume(tmp_path / "half", steps=300)
    assert same_learning(tmp_path / "whole", tmp_path / "half")
    assert len(rows(tmp_path / "whole", "metrics")) == 15

    loaded = q.load(tmp_path / "whole", "last")
    observation = np.zeros((2, 4), np.float32)
    assert loaded.act(observation) == whole.act(observation)
    quantiles = loaded.quantiles(observation, [0.1, 0.5, 0.9])
    assert quantiles.shape == (3, 2)
    assert np.isfinite(quantiles).all()
    for risk in ("cvar:0.1", "wang:0.75", "cpw:0.71"):
        values = loaded.values(observation, risk)
        assert loaded.act(observation, risk) == values.argmax()
        if HEADS[AGENTS[agent].parts["head"]].mean_only:
            np.testing.assert_allclose(values, loaded.values(observation), rtol=1e-6)
        assert len(q.evaluate(loaded, episodes=2, risk=risk).returns) == 2


@pytest.mark.parametrize("agent", ["rainbow", "rainbow-iqn", "fqf"])
def test_noise_priorities_and_fractions_are_restored_after_a_sigkill(agent, tmp_path):
    settings = flags(quick(agent, "MinAtar/Breakout-v1") | {"steps": 300})
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert command("train", "MinAtar/Breakout-v1", "--quiet", "--out", whole, *settings) == 0
    status, _ = kill_when(
        lambda: len(rows(broken, "metrics")) >= 7,
        *("train", "MinAtar/Breakout-v1", "--out", broken, *settings),
    )
    assert status == -signal.SIGKILL
    assert command("resume", broken, "--quiet") == 0
    assert same_learning(whole, broken)


def test_evaluation_does_not_change_what_a_noisy_agent_learns(tmp_path):
    for name, every in (("often", 10), ("never", 200)):
        settings = quick("rainbow-iqn") | {"evaluation_every": every}
        q.train("CartPole-v1", out=tmp_path / name, steps=200, **settings)
    for file in ("agent", "learner", "collector", "sampler"):
        path = f"checkpoints/000000200/{file}.safetensors"
        assert (tmp_path / "often" / path).read_bytes() == (tmp_path / "never" / path).read_bytes()


def test_a_noisy_agent_explores_without_epsilon_and_is_evaluated_without_noise(tmp_path):
    agent = q.train("CartPole-v1", out=tmp_path / "run", steps=120, **quick("rainbow"))
    assert {row.split(",")[4] for row in rows(tmp_path / "run", "metrics")} == {"0.0"}
    observation = np.random.default_rng(0).normal(size=(20, 2, 4)).astype(np.float32)
    first = agent.values(observation)
    assert all((agent.values(observation) == first).all() for _ in range(3))
    assert (q.load(tmp_path / "run", "last").values(observation) == first).all()


def test_priorities_are_saved_in_the_checkpoint_and_are_not_all_equal(tmp_path):
    q.train("CartPole-v1", out=tmp_path / "run", steps=200, **quick("prioritized-dqn"))
    leaves = load_file(tmp_path / "run/checkpoints/000000200/sampler.safetensors")["leaves"]
    assert len(np.unique(leaves)) > 20


def test_parts_can_be_combined_with_flags(tmp_path, capsys):
    run = tmp_path / "run"
    words = ("--agent", "iqn", "--n-step", 3, "--double", "--sampler", "prioritized")
    settings = quick("iqn")
    settings = flags({k: v for k, v in settings.items() if k not in ("agent", "n_step")})
    assert command("train", "CartPole-v1", "--out", run, "--steps", 100, *words, *settings) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "iqn with double with prioritized sampler with preset small, risk measure neutral" in said
    assert "samples of τ (N, N′, K), double, 3-step returns, batches of" in said
    assert "replay the last 150 steps, prioritized sampling" in said
    agent = q.load(run)
    assert (agent.config.learner.target.config.double, agent.config.learner.n_step) == (True, 3)


def test_contradictory_settings_are_refused_before_the_run_starts(tmp_path, capsys):
    run = tmp_path / "run"
    for words, says in (
        (["--agent", "m-iqn", "--double"], "double has no effect here"),
        (["--agent", "m-iqn", "--n-step", "3"], "target munchausen takes n_step 1, not 3"),
        (["--agent", "iqn", "--atoms", "21"], "atoms has no effect here"),
        (["--agent", "c51", "--value-max", "-200"], "is not below value_max"),
        (["--agent", "rainbow-iqm"], "Did you mean 'rainbow-iqn'"),
        (["--head", "gaussian"], "unknown head"),
    ):
        assert command("train", "CartPole-v1", "--out", run, *words) == 2
        said = capsys.readouterr().err
        assert says in said
        assert said.count("\n") == 1
        assert not run.exists()


@pytest.mark.parametrize("agent", ["dqn", "hl-gauss"])
def test_a_risk_measure_for_an_agent_that_learns_only_the_mean_causes_a_warning(agent, tmp_path):
    heard = Listening()
    settings = quick(agent) | {"risk": "cvar:0.1", "n_step": 1}
    q.train("CartPole-v1", out=tmp_path / "run", steps=60, callbacks=[heard], **settings)
    assert len(heard.warnings) == 1
    assert (
        f"{agent} learns only the mean return, so a risk measure (cvar:0.1) does not"
        in heard.warnings[0]
    )


@pytest.mark.parametrize(
    ("risks", "warned"),
    [
        ({"risk": "cvar:0.1"}, "under cvar:0.1: set n_step 1"),
        ({"behaviour_risk": "cvar:0.1"}, "under neutral: set n_step 1"),
        ({"evaluation_risk": "cvar:0.1"}, ""),
    ],
)
def test_n_step_targets_and_a_risk_measure_in_training_cause_a_warning(risks, warned, tmp_path):
    heard = Listening()
    settings = quick("iqn") | {"n_step": 3, **risks}
    q.train("CartPole-v1", out=tmp_path / "run", steps=60, callbacks=[heard], **settings)
    assert len(heard.warnings) == bool(warned)
    assert warned in "".join(heard.warnings)


@pytest.mark.parametrize(("every", "said"), [(1, "every step after 30"), (2, "every 2 steps after 30")])
def test_the_opening_lines_count_one_step_and_several(every, said, tmp_path):
    settings = quick("iqn") | {"train_frequency": every, "learning_starts": 30}
    first = Opening()
    q.train("CartPole-v1", out=tmp_path / "run", steps=40, callbacks=[first], **settings)
    assert f"one update {said}" in first.lines["learning"]


class Opening(q.Callback):
    """Remembers the opening lines."""

    def on_start(self, progress):
        self.lines = progress.description


def test_an_agent_that_never_explores_causes_a_warning(tmp_path):
    heard = Listening()
    settings = quick("rainbow") | {"noisy": False, "epsilon_start": 0.0, "epsilon_end": 0.0}
    q.train("CartPole-v1", out=tmp_path / "run", steps=60, callbacks=[heard], **settings)
    assert "the agent never explores" in heard.warnings[0]


class Paying(gym.Env):
    """Ten steps with reward 1, or −1 in three of ten episodes."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left, self.sign = 10, 1 if self.np_random.random() < 0.7 else -1
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.zeros(1, np.float32), float(self.sign), self.left == 0, False, {}


@pytest.mark.parametrize("agent", ["c51", "hl-gauss"])
@pytest.mark.parametrize(("support", "warned"), [((-10, 10), False), ((-5, 5), True), ((-10, 4), True)])
def test_returns_outside_the_support_cause_a_warning_with_their_range(agent, support, warned, tmp_path):
    heard = Listening()
    settings = quick(agent) | {"stack": 1, "value_min": support[0], "value_max": support[1]}
    q.train(Paying, out=tmp_path / "run", steps=200, discount=1.0, callbacks=[heard], **settings)
    if not warned:
        assert heard.warnings == []
        return
    assert 1 <= len(heard.warnings) <= 3
    assert "set value_min and value_max to at least that range" in heard.warnings[-1]
    assert any("to 10 were seen" in warning for warning in heard.warnings)


def test_the_support_warning_is_repeated_only_when_returns_are_twice_as_far_outside():
    watch = SupportWatch(-1.0, 1.0)
    highs = (0.5, 1.5, 1.8, 2.0, 2.1, 3.0, 9.0, 2.0)
    warned = [bool(watch.warning(np.array([0.0, high]))) for high in highs]
    assert warned == [False, True, False, False, True, False, True, False]


def test_importance_increases_linearly_to_one(tmp_path):
    settings = quick("prioritized-dqn") | {"importance_start": 0.2, "importance_steps": 100}
    settings |= {"learning_starts": 60, "train_frequency": 4}
    seen = []

    class Watching(Replay):
        def sample(self, importance=1.0):
            seen.append(importance)
            return super().sample(importance)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quantail.training.build.Replay", Watching)
        q.train("CartPole-v1", out=tmp_path / "run", steps=140, **settings)
    steps = [step for step in range(60, 141) if step % 4 == 0]
    assert seen == pytest.approx([min(1.0, 0.2 + 0.8 * step / 100) for step in steps])


def test_importance_stays_at_one_when_a_run_is_extended(tmp_path):
    q.train("CartPole-v1", out=tmp_path / "run", steps=120, **quick("prioritized-dqn"))
    seen = []

    class Watching(Replay):
        def sample(self, importance=1.0):
            seen.append(importance)
            return super().sample(importance)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quantail.training.build.Replay", Watching)
        q.resume(tmp_path / "run", steps=200)
    assert seen
    assert set(seen) == {1.0}
