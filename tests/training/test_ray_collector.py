"""Remote actors on a real local Ray cluster, including actors that are killed."""

import os
import signal
from itertools import pairwise
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch

import quantail
from quantail.collecting.clock import Clock
from quantail.collecting.ray_collector import (
    CHUNK,
    SYNC_INTERVAL,
    ChunkRequest,
    RayCollector,
    RemoteActor,
    actor_epsilons,
)
from quantail.errors import QuantailError
from quantail.recipes import compose
from quantail.replay.store import FINAL, TERMINAL
from quantail.risk import CVaR, Neutral
from quantail.spaces import ObservationSpec
from tests.helpers.crowded import crowded, unmarked
from tests.helpers.runs import TINY, Listening, flags, prepare
from tests.helpers.runs import quantail as command

pytest.importorskip("ray")
PLAIN = {name: value for name, value in TINY.items() if name != "epsilon_steps"}
CARTPOLE = PLAIN | {
    "mlp_sizes": [16],
    "n_step": 1,
    "engine": "ray",
    "actors": 2,
    "buffer_size": 4000,
}


@pytest.fixture(scope="module")
def address():
    """The address of a real cluster on this machine."""
    from ray.cluster_utils import Cluster

    # More than the actors of one run need: those of the run before may still be ending.
    options = {"num_cpus": 8, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=options)
    yield cluster.address
    cluster.shutdown()


@pytest.fixture
def cluster(address, monkeypatch):
    """Let runs use the cluster; without it, each starts one of its own."""
    monkeypatch.setenv("RAY_ADDRESS", address)


def follows(state, action, seen):
    """Return whether CartPole leads from one state to the other."""
    env = gym.make("CartPole-v1").unwrapped
    env.reset(seed=0)
    env.state = np.array(state, np.float64)
    found = env.step(int(action))[0]
    return np.allclose(found, seen, atol=1e-4)


def every_transition_follows(store):
    """Check all stored transitions against the dynamics and return their number."""
    checked = 0
    for env in range(store.num_envs):
        steps = np.arange(store.oldest[env], store.written[env])
        frames = np.zeros((len(steps), 4), np.float32)
        store.frames.read(store.indices(np.full(len(steps), env), steps), frames)
        for at in range(len(steps) - 1):
            flags = store.flags[env, steps[at] % store.length]
            if not flags & (TERMINAL | FINAL):
                action = store.actions[env, steps[at] % store.length]
                assert follows(frames[at], action, frames[at + 1]), (env, at)
            checked += not flags & FINAL
    return checked


def test_the_epsilons_of_actors_are_those_of_ape_x():
    settings = compose("small", {"engine": "ray", "actors": 8})
    expected = [0.4 ** (1 + 7 * i / 7) for i in range(8)]
    assert actor_epsilons(settings) == pytest.approx(expected)
    one = compose("small", {"engine": "ray", "actors": 1})
    assert actor_epsilons(one) == pytest.approx([0.4**4.5])  # between the two ends
    assert actor_epsilons(compose("minatar", {"engine": "ray", "agent": "rainbow"})).max() == 0


def test_the_epsilon_schedule_is_refused_with_ray():
    with pytest.raises(QuantailError, match="epsilon_end has no effect here"):
        compose("small", {"engine": "ray", "epsilon_end": 0.3})


class LostError(Exception):
    """Like Ray's error for a chunk that is lost with its machine."""


def test_an_actor_whose_chunk_is_lost_is_replaced_and_repeated_losses_end_the_run():
    class Exceptions:
        RayError, RayTaskError = LostError, type("RayTaskError", (Exception,), {})

    class Cluster:
        exceptions = Exceptions

        @staticmethod
        def wait(refs, **_):
            return refs[:1], refs[1:]

        @staticmethod
        def get(ref):
            raise LostError("the object is gone\nwith its node")

    collector = object.__new__(RayCollector)
    said, truncated = [], []
    collector.ray, collector.warn = Cluster, said.append
    collector.truncate = lambda env, frame, mask: truncated.append(env)
    collector._start_actor = lambda index: collector.pending.update({object(): index})
    collector.info = SimpleNamespace(
        config=compose("small", {"engine": "ray", "actors": 2, "num_envs": 2}),
        observation=ObservationSpec.array((4,), "float32", "vector"),
    )
    collector.learner, collector.clock = SimpleNamespace(updates=0), Clock()
    collector.exploring, collector.pending, collector.waited = True, {object(): 1}, 0.0
    collector.failures, collector.restarts = {0: 0, 1: 0}, {0: 0, 1: 0}
    collector.observations, collector.masks = np.zeros((4, 4)), None
    collector.active = np.array([True, True, True, False])
    assert collector.collect(0.0) == []
    assert truncated == [2]
    assert collector.restarts == {0: 0, 1: 1}
    assert collector.collect(0.0) == []
    with pytest.raises(QuantailError, match="actor 1 cannot start: with its node"):
        collector.collect(0.0)
    assert len(said) == 2


def test_the_ray_engine_uses_prioritized_replay_by_default():
    assert compose("small", {}).to_dict()["sampler"] == "uniform"
    assert compose("small", {"engine": "ray"}).to_dict()["sampler"] == "prioritized"
    assert compose("small", {"engine": "ray", "sampler": "uniform"}).to_dict()["sampler"] == "uniform"
    with pytest.raises(QuantailError, match="actors has no effect here"):
        compose("small", {"actors": 3})


def test_a_chunk_has_the_transitions_of_each_environment_in_the_order_of_time(tmp_path):
    trainer = prepare("CartPole-v1", out=tmp_path / "run", steps=200, **TINY | {"mlp_sizes": [16]})
    info = trainer.info
    settings = info.config.replace(engine="ray", actors=3, num_envs=2, sampler="uniform")
    info = type(info)(**{**vars(info), "config": settings})
    remote = RemoteActor(info, "CartPole-v1", Neutral(), index=1, restart=0, parts={})
    online = trainer.learner.online.state_dict()
    weights = {name: tensor.numpy() for name, tensor in online.items()}
    chunk = remote.collect(ChunkRequest(0, 0.5, CVaR(0.1)), weights)
    trainer.close()
    assert len(chunk) == 2 * CHUNK
    assert remote.actor.risk == CVaR(0.1)
    assert torch.equal(
        next(remote.actor.network.parameters()), next(trainer.learner.online.parameters())
    )
    for env in (2, 3):
        mine = [one for one in chunk if one.env == env]
        assert len(mine) == CHUNK
        assert mine[0].first
        for one, after in pairwise(mine):
            assert after.first == (one.terminated or one.truncated)
            assert after.first or np.array_equal(one.next_frame, after.frame)
            assert follows(one.frame, one.action, one.next_frame)


def test_a_killed_actor_is_replaced_and_no_transition_spans_its_restart(tmp_path, cluster):
    heard = Listening()
    trainer = prepare("CartPole-v1", out=tmp_path / "run", steps=10**6, callbacks=[heard], **CARTPOLE)
    store, collector = trainer.replay.store, trainer.collector
    written, epsilon = store.written, trainer.parts.monitor.epsilon
    trainer.start()
    assert epsilon() == 1.0
    trainer.step()
    assert {
        collector.ray.get(actor.status.remote())[1].epsilon for actor in collector.actors.values()
    } == {1}
    collector.set_risk(CVaR(0.3))
    while trainer.steps < 800 or not written[1]:
        trainer.step()
    for index, actor in collector.actors.items():
        request = collector.ray.get(actor.status.remote())[1]
        assert request.epsilon == collector.epsilons[index]
        assert request.version >= SYNC_INTERVAL
        assert request.risk == CVaR(0.3)
    assert epsilon() == pytest.approx(collector.epsilons.mean())
    os.kill(collector.ray.get(collector.actors[1].status.remote())[0], signal.SIGKILL)
    while not heard.warnings:
        trainer.step()
    assert heard.warnings == [
        "actor 1 was lost and has been replaced; its episodes are truncated at the last transition "
        "that it sent."
    ]
    before = int(written[1])
    while written[1] < before + 2 * CHUNK:  # until the new actor has sent two chunks
        trainer.step()
    assert trainer.learner.updates > 50
    store.check()
    assert every_transition_follows(store) > 500

    # The run can be resumed from its checkpoint, with new actors.
    trainer.save()
    trainer.close()
    quantail.resume(tmp_path / "run", steps=trainer.steps + 300)
    assert int((tmp_path / "run/checkpoints/last").read_text()) >= trainer.steps + 300


class Failing(gym.Wrapper):
    """CartPole that fails in its 40th step."""

    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))
        self.left = 40

    def step(self, action):
        self.left -= 1
        if self.left < 0:
            raise ValueError("out of luck")
        return super().step(action)


def test_an_environment_that_fails_in_an_actor_ends_the_run_with_its_error(tmp_path, cluster):
    with pytest.raises(
        QuantailError, match=r"actor \d failed: .*failed in step: ValueError: out of luck"
    ):
        quantail.train(Failing, out=tmp_path / "run", steps=400, **CARTPOLE)


def test_without_ray_or_its_cluster_there_is_an_error_and_no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(QuantailError, match=r"no Ray cluster answers at 127.0.0.1:9"):
        quantail.train("CartPole-v1", out=tmp_path / "run", steps=400, **CARTPOLE)
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(QuantailError, match=r"pip install 'quantail\[ray\]'"):
        quantail.train("CartPole-v1", out=tmp_path / "run", steps=400, **CARTPOLE)
    assert not (tmp_path / "run").exists()


def test_actors_search_the_working_folder_after_installed_modules(tmp_path):
    folder = crowded(tmp_path / "here")
    settings = flags(CARTPOLE | {"steps": 200})
    ended = command("train", "own_env:Own-v0", "--out", "run", "--quiet", *settings, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert unmarked(folder) is True
