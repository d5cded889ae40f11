import csv
import json

import gymnasium as gym
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import quantail as q
from quantail.errors import QuantailError
from quantail.replay.store import FIRST, TERMINAL, TRUNCATED
from quantail.runs.folder import SCHEMA
from quantail.seeds import GENERATORS, derived_seed, generator
from tests.helpers.runs import QUICK, TINY, Listening, ShiftedCartPole, command, rows


class Recorder(q.Callback):
    def on_start(self, progress):
        self.lines = progress.description

    def on_end(self, progress):
        self.summary = progress.summary


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "one"
    recorder = Recorder()
    agent = q.train("CartPole-v1", out=out, steps=250, callbacks=[recorder], **QUICK["CartPole-v1"])
    return out, agent, recorder


def table(out, name):
    with (out / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def test_tables_are_csv_files_with_the_rows_that_the_settings_specify(run):
    out, _, _ = run
    assert [int(row["steps"]) for row in table(out, "metrics")] == [*range(20, 250, 20), 250]
    assert [int(row["steps"]) for row in table(out, "timing")] == [*range(20, 250, 20), 250]
    evaluations = table(out, "evaluations")
    assert [(int(r["steps"]), r["policy"]) for r in evaluations] == [
        (0, "random"),
        (100, "agent"),
        (200, "agent"),
        (250, "agent"),
    ]
    metrics = table(out, "metrics")[-1]
    assert int(metrics["updates"]) == 250 // 2 - 59 // 2
    assert float(metrics["epsilon"]) == 0.01
    assert metrics["loss"]
    assert table(out, "metrics")[0]["loss"] == ""
    episodes = table(out, "episodes")
    assert sum(int(row["length"]) for row in episodes) <= 250
    assert all(float(row["return"]) == int(row["length"]) for row in episodes)
    ends = [int(row["steps"]) for row in episodes]
    assert ends == np.cumsum([int(row["length"]) for row in episodes]).tolist()


def test_run_json_describes_the_run(run):
    out, _, recorder = run
    info = json.loads((out / "run.json").read_text())
    assert (info["env"], info["settings"]["preset"], info["schema"]) == ("CartPole-v1", "small", SCHEMA)
    assert info["settings"]["head_size"] == 16
    assert info["versions"]["torch"] == torch.__version__
    assert "bytes" in recorder.lines["replay"] or "kB" in recorder.lines["replay"]
    assert "preset small" in recorder.lines["agent"]


def test_the_summary_has_the_scores_before_and_after_training_and_the_time_of_each_phase(run):
    _, _, recorder = run
    summary = recorder.summary
    scores = summary.scores
    assert 8 < scores.means["random"] < 60
    assert scores.means == scores.values  # the run is neutral
    assert scores.values["best"] >= scores.values["final"] > 0
    assert set(summary.seconds) >= {"acting", "environment", "replay", "learning"}
    assert all(summary.seconds[phase] > 0 for phase in ("acting", "environment", "replay", "learning"))


def test_a_loaded_agent_is_the_one_that_was_trained(run):
    out, agent, _ = run
    observations = np.random.default_rng(0).normal(size=(20, 2, 4)).astype(np.float32)
    last = q.load(out, "last")
    np.testing.assert_array_equal(
        last.quantiles(observations, [0.2, 0.8]), agent.quantiles(observations, [0.2, 0.8])
    )
    best = (out / "checkpoints/best").read_text().strip()
    by_steps = q.load(out, str(int(best)))
    np.testing.assert_array_equal(q.load(out).values(observations), by_steps.values(observations))
    with pytest.raises(QuantailError, match="does not exist: use last, best, previous"):
        q.load(out, "999")


def test_updates_start_at_learning_starts_and_follow_train_frequency(tmp_path):
    settings = TINY | {"train_frequency": 7, "learning_starts": 70, "log_every": 1, "steps": 100}
    q.train("CartPole-v1", out=tmp_path / "run", **settings)
    updates = [int(row["updates"]) for row in table(tmp_path / "run", "metrics")]
    assert updates == [max(0, step // 7 - 9) if step >= 70 else 0 for step in range(1, 101)]


def test_the_number_of_updates_does_not_depend_on_the_number_of_environments(tmp_path):
    settings = TINY | {
        "train_frequency": 4,
        "num_envs": 8,
        "steps": 1600,
        "learning_starts": 64,
        "log_every": 1600,
    }
    settings |= {"epsilon_steps": 10_000, "buffer_size": 800}
    q.train("CartPole-v1", out=tmp_path / "run", **settings)
    assert int(table(tmp_path / "run", "metrics")[-1]["updates"]) == 1600 // 4 - 63 // 4
    assert {int(row["env"]) for row in table(tmp_path / "run", "episodes")} == set(range(8))


def test_rewards_are_clipped_for_learning_but_not_in_reported_returns(tmp_path):
    def heavy():
        return gym.wrappers.TransformReward(gym.make("CartPole-v1"), lambda r: 50.0 * r)

    q.train(heavy, out=tmp_path / "run", steps=100, **TINY | {"clip_rewards": 1.0})
    stored = np.concatenate([load_file(p)["rewards"] for p in (tmp_path / "run/replay").iterdir()])
    assert set(stored.tolist()) <= {0.0, 1.0}
    assert all(float(r["return"]) == 50 * int(r["length"]) for r in table(tmp_path / "run", "episodes"))


def test_a_lost_life_is_terminal_for_learning_but_does_not_end_the_episode(tmp_path):
    """In Breakout with random actions, lives are lost within episodes, and the store marks them."""
    settings = QUICK["ALE/Breakout-v5"] | {
        "max_episode_steps": 400,
        "num_envs": 1,
        "evaluation_episodes": 1,
    }
    settings |= {
        "buffer_size": 1000,
        "learning_starts": 400,
        "evaluation_every": 10_000,
        "log_every": 400,
    }
    q.train("ALE/Breakout-v5", out=tmp_path / "run", steps=400, **settings)
    flags = np.concatenate([load_file(p)["flags"] for p in sorted((tmp_path / "run/replay").iterdir())])
    games = len(table(tmp_path / "run", "episodes"))
    assert ((flags & TERMINAL) > 0).sum() >= 5 * games
    assert ((flags & FIRST) > 0).sum() <= games + 1 + len(list((tmp_path / "run/replay").iterdir()))


def test_an_existing_folder_is_refused_and_not_changed(run):
    out, _, _ = run
    before = (out / "metrics.csv").read_bytes()
    with pytest.raises(QuantailError, match="exists already: continue with `quantail resume"):
        q.train("CartPole-v1", out=out)
    assert (out / "metrics.csv").read_bytes() == before


def test_wrong_settings_leave_no_folder_behind(tmp_path):
    wrongs = ({"risk": "cvar:7"}, {"agent": "iqm"}, {"stepz": 3}, {"buffer_size": 10**15})
    for wrong in (*wrongs, {"torso": "nature"}, {"device": "cuda"}):
        with pytest.raises(QuantailError):
            q.train("CartPole-v1", out=tmp_path / "run", **wrong)
    assert not (tmp_path / "run").exists()


def test_a_function_that_makes_no_new_environment_is_refused(tmp_path):
    shared = gym.make("CartPole-v1")
    cases = (
        (lambda: 3, "not a Gymnasium"),
        (lambda: 1 / 0, "cannot be made"),
        (lambda: shared, "at each call"),
    )
    for wrong, says in cases:
        with pytest.raises(QuantailError, match=says):
            q.train(wrong, out=tmp_path / "run")
    agent = q.train("CartPole-v1", out=tmp_path / "right", steps=60, **TINY)
    with pytest.raises(QuantailError, match="at each call"):
        q.evaluate(agent, lambda: shared, episodes=2)
    assert not (tmp_path / "run").exists()


class Exploding(gym.Env):
    """After 400 steps, rewards are so large that the sum of losses overflows a float32."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        Exploding.steps += 1
        return np.zeros(2, np.float32), 1.5e38 if Exploding.steps > 400 else 1.0, False, False, {}


def test_a_diverged_run_stops_with_an_error_and_keeps_the_last_good_checkpoint(tmp_path):
    Exploding.steps = 0
    settings = TINY | {"max_episode_steps": 50, "evaluation_every": 10_000, "checkpoint_every": 20}
    with pytest.raises(QuantailError, match="loss was not finite"):
        q.train(Exploding, out=tmp_path / "run", steps=2000, **settings)
    agent = q.load(tmp_path / "run")
    assert np.isfinite(agent.values(np.zeros(2, np.float32))).all()


class Gamble(gym.Env):
    """One choice: a sure reward of 1, or a gamble on 10 or −6 with equal probability, mean 2."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(1, np.float32), {}

    def step(self, action):
        pay = (10.0 if self.np_random.random() < 0.5 else -6.0) if action else 1.0
        return np.ones(1, np.float32), pay, True, False, {}


def test_the_learned_choice_and_the_best_checkpoint_depend_on_the_risk_measure(tmp_path):
    settings = {
        "steps": 2000,
        "learning_starts": 100,
        "epsilon_steps": 1500,
        "n_step": 1,
        "evaluation_every": 100,
        "evaluation_episodes": 40,
        "train_frequency": 4,
        "buffer_size": 2000,
        "threads": 1,
    }
    for risk, choice in (("neutral", 1), ("cvar:0.1", 0)):
        run = tmp_path / risk.replace(":", "")
        q.train(Gamble, risk=risk, out=run, **settings)
        agent = q.load(run)
        assert agent.act(np.ones(1)) == choice
        rows = [row for row in table(run, "evaluations") if row["policy"] == "agent"]
        best = max(float(row["value"]) for row in rows)
        assert [float(r["value"]) for r in rows if int(r["steps"]) == agent.checkpoint] == [best]
    # A lucky gamble has a higher mean, but the best checkpoint is chosen by CVaR.
    assert best == 1.0


def test_a_risk_measure_with_n_step_returns_causes_a_warning(tmp_path):
    for risk, n_step, count in (("cvar:0.5", 2, 1), ("cvar:0.5", 1, 0), ("neutral", 2, 0)):
        heard = Listening()
        settings = TINY | {"n_step": n_step, "steps": 60}
        q.train(
            "CartPole-v1", risk=risk, out=tmp_path / f"{risk}{n_step}", callbacks=[heard], **settings
        )
        assert len(heard.warnings) == count


def test_an_environment_made_by_a_function_must_be_passed_again(tmp_path):
    q.train(Gamble, out=tmp_path / "run", steps=60, **TINY)
    agent = q.load(tmp_path / "run")
    with pytest.raises(QuantailError, match=r"made by a function .*Gamble: pass it again as env="):
        q.evaluate(agent, episodes=1)
    assert len(q.evaluate(agent, Gamble, episodes=1).returns) == 1


def test_a_users_own_risk_works_from_python(tmp_path):
    agent = q.train("CartPole-v1", out=tmp_path / "run", steps=80, risk=lambda tau: tau**2, **TINY)
    assert agent.risk(0.5) == pytest.approx(0.25)
    with pytest.raises(QuantailError, match="cannot be imported"):
        q.load(tmp_path / "run")  # never silently uses another measure
    assert str(q.load(tmp_path / "run", risk="neutral").risk) == "neutral"


def test_a_time_limit_truncates_an_episode_and_is_not_terminal(tmp_path):
    settings = TINY | {"max_episode_steps": 9, "buffer_size": 1000, "evaluation_every": 1000}
    q.train("CartPole-v1", out=tmp_path / "run", steps=200, **settings)
    parts = [load_file(path) for path in sorted((tmp_path / "run/replay").iterdir())]
    # Each segment begins with the last step of the previous one, written again.
    flags = np.concatenate([parts[0]["flags"], *(part["flags"][1:] for part in parts[1:])])
    truncated, terminal = (flags & TRUNCATED) > 0, (flags & TERMINAL) > 0
    terminated = [row["terminated"] for row in table(tmp_path / "run", "episodes")]
    assert not (truncated & terminal).any()
    assert truncated.sum() == terminated.count("0") > 10
    assert terminal.sum() == terminated.count("1")


def test_actions_that_do_not_start_at_zero_can_be_trained_used_and_resumed(tmp_path):
    settings = QUICK["CartPole-v1"]
    q.train("CartPole-v1", out=tmp_path / "plain", steps=150, **settings)
    agent = q.train(ShiftedCartPole, out=tmp_path / "shifted", steps=100, **settings)
    q.resume(tmp_path / "shifted", steps=150, env=ShiftedCartPole)
    weights = "checkpoints/000000150/agent.safetensors"
    assert (tmp_path / "plain" / weights).read_bytes() == (tmp_path / "shifted" / weights).read_bytes()
    assert agent.act(np.zeros((2, 4))) in (5, 6)


def test_the_risk_of_a_preset_file_is_used_unless_another_is_given(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text('risk = "cvar:0.1"\n', encoding="utf-8")
    small = TINY | {"steps": 60}
    assert str(q.train("CartPole-v1", preset=str(own), out=tmp_path / "a", **small).risk) == "cvar:0.1"
    agent = q.train("CartPole-v1", preset=str(own), out=tmp_path / "b", risk="pow:-2", **small)
    assert str(agent.risk) == "pow:-2"


def test_an_agent_trained_on_a_function_can_be_evaluated_without_passing_it_again(tmp_path):
    def mine():
        return gym.make("CartPole-v1")

    agent = q.train(mine, out=tmp_path / "run", steps=60, **TINY)
    assert len(q.evaluate(agent, episodes=2).returns) == 2


def test_tensorboard_events_are_written_only_on_request(tmp_path):
    q.train("CartPole-v1", out=tmp_path / "with", steps=60, tensorboard=True, **TINY)
    q.train("CartPole-v1", out=tmp_path / "without", steps=60, **TINY)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "with/tensorboard")).Reload()
    shown = [event.value for event in events.Scalars("training/epsilon")]
    written = [float(row.split(",")[4]) for row in rows(tmp_path / "with", "metrics")]
    assert shown == pytest.approx(written)
    assert not (tmp_path / "without/tensorboard").exists()


def test_generators_of_one_seed_are_independent_and_reproducible():
    samples = {name: generator(3, name).random(4).tolist() for name in GENERATORS}
    assert len({tuple(values) for values in samples.values()}) == len(GENERATORS)
    assert generator(3, "replay").random(4).tolist() == samples["replay"]
    assert generator(4, "replay").random(4).tolist() != samples["replay"]
    assert derived_seed(3, "weights") != derived_seed(3, "evaluation 0")


def test_a_replay_buffer_that_will_not_fit_in_memory_causes_one_warning_and_the_run_continues(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("quantail.training.memory_watch.available_memory", lambda: 100)
    listening = Listening()
    few = QUICK["ALE/Breakout-v5"] | {"steps": 120, "out": tmp_path / "run"}
    q.train("ALE/Breakout-v5", callbacks=[listening], **few)
    assert len(listening.warnings) == 1
    assert "start a new run with a smaller buffer_size" in listening.warnings[0]


@pytest.mark.parametrize(
    ("load", "threads", "warned"), [(1.7, 2, True), (1.7, 1, False), (0.3, 2, False)]
)
def test_several_threads_on_a_busy_machine_cause_a_warning(load, threads, warned, tmp_path, monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    heard = Listening()
    few = QUICK["CartPole-v1"] | {"steps": 61, "threads": threads, "evaluation_every": 1000}
    q.train("CartPole-v1", out=tmp_path / "run", callbacks=[heard], **few)
    assert (
        any("--threads 1 (threads=1 in Python) may be faster" in sentence for sentence in heard.warnings)
        == warned
    )


def test_more_threads_than_a_machine_can_start_are_refused(tmp_path, capsys):
    assert command("train", "CartPole-v1", "--out", tmp_path / "run", "--threads", 1_000_000) == 2
    assert "threads takes a whole number from 0 to 1024, not '1000000'." in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
