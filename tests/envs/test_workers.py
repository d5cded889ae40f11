"""Environments in worker processes: the same results, and what happens when a worker is lost."""

import os
import signal
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
from quantail.envs.workers import WorkerEnvs
from quantail.errors import QuantailError
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
