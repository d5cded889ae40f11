"""Environments in worker processes: the same results, and what happens when a worker is lost."""

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import gymnasium as gym
import numpy as np
import psutil
import pytest

import quantail as q
from quantail.envs import specs_of
from quantail.envs.vector import EpisodeLog
from quantail.envs.workers import WorkerEnvs
from quantail.errors import QuantailError
from quantail.spaces import same
from tests.helpers.runs import (
    Listening,
    command,
    flags,
    kill_when,
    killed_at,
    prepare,
    quick,
    same_learning,
)

CARTPOLE = quick("iqn") | {"steps": 200, "num_envs": 3}
SHOP = quick("iqn") | {"steps": 200, "num_envs": 3, "stack": 1}


@pytest.mark.parametrize(
    ("env", "given", "workers"),
    [
        ("CartPole-v1", CARTPOLE, 3),
        ("tests.helpers.shop:Shop-v0", SHOP, 2),
        ("tests.helpers.shop:Shop-v0", SHOP, 1),
    ],
)
def test_a_run_is_the_same_bit_for_bit_whatever_the_number_of_workers(env, given, workers, tmp_path):
    q.train(env, out=tmp_path / "local", **given)
    q.train(env, out=tmp_path / "workers", workers=workers, **given)
    same_learning(tmp_path / "local", tmp_path / "workers")


def test_a_run_with_workers_that_is_killed_resumes_bit_for_bit(tmp_path):
    env, given = "tests.helpers.shop:Shop-v0", flags(SHOP | {"workers": 2})
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert command("train", env, "--out", whole, "--quiet", *given) == 0
    killed_at("os.rename", ".000000150.part", "train", env, "--out", cut, "--quiet", *given)
    assert command("resume", cut, "--quiet", "--trust", "tests.helpers.shop") == 0
    same_learning(whole, cut)


def test_a_function_of_the_main_program_can_be_stepped_in_workers(tmp_path):
    limit = 30
    trained = q.train(
        lambda: gym.wrappers.TimeLimit(gym.make("CartPole-v1"), limit),
        out=tmp_path / "run",
        workers=2,
        **CARTPOLE,
    )
    assert trained.act(np.zeros((2, 4))) in (0, 1)


def test_an_environment_that_was_registered_here_is_known_to_workers(tmp_path):
    gym.register("Registered-v0", entry_point=lambda: gym.make("CartPole-v1").unwrapped)
    try:
        q.train("Registered-v0", out=tmp_path / "run", workers=2, **CARTPOLE)
    finally:
        del gym.registry["Registered-v0"]


class Fragile(gym.Wrapper):
    """CartPole that does something once in its life, at a step of its worker."""

    def __init__(self, what, marker):
        super().__init__(gym.make("CartPole-v1"))
        self.what, self.marker, self.steps = what, Path(marker), 0

    def step(self, action):
        self.steps += 1
        if self.steps >= 20 and not self.marker.exists():
            self.marker.touch()
            {"die": die, "hang": hang, "fail": fail}[self.what]()
        return self.env.step(action)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def hang():
    time.sleep(1000)  # here


def fail():
    raise RuntimeError("the simulator lost its licence")


HANGS_AT = next(
    number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "# here" in line
)


def fragile(what, tmp_path):
    marker = tmp_path / "marker"
    return lambda: Fragile(what, marker)


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("die", "was ended by SIGKILL; it has been replaced, and its episodes are truncated"),
        (
            "hang",
            f"did not answer for 1 s in test_workers.py, line {HANGS_AT}; it has",
        ),
    ],
)
def test_a_worker_that_is_lost_is_replaced_and_its_episodes_are_truncated(what, says, tmp_path):
    listening = Listening()
    q.train(
        fragile(what, tmp_path),
        out=tmp_path / "run",
        callbacks=[listening],
        workers=2,
        worker_timeout=1 if what == "hang" else 300,
        **CARTPOLE | {"steps": 201},
    )
    assert 1 <= len(listening.warnings) <= 2  # both workers may get there at once
    assert all(says in warning for warning in listening.warnings)
    assert q.resume(tmp_path / "run", env=lambda: gym.make("CartPole-v1"), steps=230) is not None


def test_the_replay_buffer_of_a_lost_worker_has_whole_episodes(tmp_path):
    given = CARTPOLE | {"workers": 2, "learning_starts": 150, "evaluation_every": 1000}
    trainer = prepare(fragile("die", tmp_path), out=tmp_path / "run", **given)
    store = trainer.replay.store
    trainer.run()
    store.check()
    flags_of = [store.flags[env, : store.written[env]] for env in range(3)]
    assert sum(int((one & 4 > 0).sum()) for one in flags_of) >= 1  # truncated


def test_an_error_of_the_environment_ends_the_run_with_its_line(tmp_path):
    with pytest.raises(
        QuantailError, match=r"failed in step: RuntimeError: the simulator lost .*line \d+"
    ):
        q.train(fragile("fail", tmp_path), out=tmp_path / "run", workers=2, **CARTPOLE)


def test_a_worker_that_is_lost_each_time_ends_the_run():
    config = q.configure("CartPole-v1")
    specs = specs_of(q.make("CartPole-v1", config))
    envs = WorkerEnvs(Dying, config.environment, specs, 2, 1, 60.0, lambda sentence: None)
    with pytest.raises(QuantailError, match="was ended by SIGKILL, the last of 3 losses in a row"):
        envs.reset({0: 1, 1: 2})
    envs.close()


class DyingLater(gym.Wrapper):
    """CartPole whose process dies at each first step."""

    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))

    def step(self, action):
        if "quantail.envs.worker" not in sys.modules:  # an evaluation in this process
            return self.env.step(action)
        os._exit(3)


def test_a_worker_that_is_lost_at_each_step_ends_the_run_although_it_can_reset(tmp_path):
    with pytest.raises(QuantailError, match="ended with status 3, the last of 3 losses in a row"):
        q.train(DyingLater, out=tmp_path / "run", workers=1, **CARTPOLE | {"evaluation_every": 10**6})


class Sleepy(gym.Wrapper):
    """CartPole whose steps take a moment; it writes a file when it is closed."""

    def __init__(self, marker):
        super().__init__(gym.make("CartPole-v1"))
        self.marker = Path(marker)

    def step(self, action):
        time.sleep(0.02)
        return self.env.step(action)

    def close(self):
        self.marker.touch()


def test_replaying_a_long_episode_may_take_longer_than_one_answer(tmp_path):
    envs = one_worker(lambda: Sleepy(tmp_path / "closed"), timeout=0.1)
    actions = [0, 1] * 4
    seen = envs.reset({0: 5})[0]
    for action in actions:
        (outcome,) = envs.step([action])
        assert outcome is not None
        seen = outcome.seen
    log = EpisodeLog(5, actions, float(len(actions)), seen.observation)
    assert same(envs.replay({0: log})[0].observation, seen.observation)
    assert not (tmp_path / "closed").exists()
    envs.close()
    assert (tmp_path / "closed").exists()


def one_worker(source, timeout):
    config = q.configure("CartPole-v1")
    specs = specs_of(q.make("CartPole-v1", config))

    def warn(sentence):
        raise AssertionError(sentence)

    return WorkerEnvs(source, config.environment, specs, 1, 1, timeout, warn)


def test_signals_that_end_the_training_do_not_end_its_workers_first():
    envs = one_worker("CartPole-v1", timeout=60)
    envs.reset({0: 1})
    for one in (signal.SIGINT, signal.SIGTERM):
        envs.workers[0].process.send_signal(one)
        assert envs.step([0])[0] is not None
    assert os.getpgid(envs.workers[0].process.pid) != os.getpgid(0)
    envs.close()


def test_after_an_error_of_one_worker_the_answers_of_the_others_are_read():
    config = q.configure("CartPole-v1")
    specs = specs_of(q.make("CartPole-v1", config))
    envs = WorkerEnvs(FailsOnOne, config.environment, specs, 2, 2, 60, print)
    envs.reset({0: 1, 1: 1})
    with pytest.raises(QuantailError, match="RuntimeError: one"):
        envs.step([1, 0])
    first, second = envs.step([0, 0])
    assert (first.reward, second.reward) == (1.0, 2.0)
    envs.close()


class FailsOnOne(gym.Wrapper):
    """CartPole that rewards with the number of steps, and fails at action 1."""

    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))
        self.steps = 0

    def step(self, action):
        if action == 1:
            raise RuntimeError("one")
        self.steps += 1
        observation, _, *rest = self.env.step(action)
        return observation, self.steps, *rest


def test_a_resumption_that_fails_leaves_no_worker(tmp_path):
    run = tmp_path / "run"
    q.train("CartPole-v1", out=run, workers=2, **CARTPOLE)
    for segment in (run / "replay").iterdir():
        segment.write_bytes(b"damaged")
    before = workers()
    with pytest.raises(QuantailError, match="damaged") as kept:
        q.resume(run, steps=300)
    assert workers() == before, kept


def workers():
    """Return the workers of this process."""
    return {one.pid for one in psutil.Process().children() if one.status() != psutil.STATUS_ZOMBIE}


class Dying(gym.Wrapper):
    """CartPole whose process dies at each reset."""

    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))

    def reset(self, **options):
        os.kill(os.getpid(), signal.SIGKILL)


def test_workers_end_with_the_training_process(tmp_path):
    run = tmp_path / "run"
    given = flags(CARTPOLE | {"steps": 100_000, "workers": 2})
    saved = run / "checkpoints" / "last"
    kill_when(saved.exists, "train", "CartPole-v1", "--out", run, "--quiet", *given)
    for _ in range(200):
        if not orphans():
            break
        time.sleep(0.05)
    assert not orphans()


def orphans():
    """Return the workers whose training process is gone."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any("quantail.envs.worker" in word for word in process.cmdline()) and process.ppid() == 1:
                found.append(process.pid)
    return found


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"workers": 4, "num_envs": 2}, "workers is 4, and num_envs is 2: raise num_envs"),
        ({"workers": -1}, "workers"),
        ({"workers": 2, "engine": "ray"}, "workers has no effect here"),
    ],
)
def test_a_number_of_workers_that_cannot_be_is_refused(given, says):
    with pytest.raises(QuantailError, match=says):
        q.configure("CartPole-v1", **given)


def test_each_worker_has_an_environment_unless_another_number_is_given():
    assert q.configure("CartPole-v1", workers=4).run.num_envs == 4
    assert q.configure("CartPole-v1", workers=2, num_envs=6).run.num_envs == 6
    assert q.configure("CartPole-v1").run.num_envs == 1


def test_an_environment_that_cannot_be_sent_to_a_worker_is_refused(tmp_path):
    lock = threading.Lock()

    def locked():
        assert lock
        return gym.make("CartPole-v1")

    with pytest.raises(QuantailError, match=r"cannot be sent to a worker .*module:id, or use workers=0"):
        q.train(locked, out=tmp_path / "run", workers=2, **CARTPOLE)
    assert not (tmp_path / "run").exists()
