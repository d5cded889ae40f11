"""Acting on Ray: a real cluster of this machine's cores, and actors that are really killed."""

import os
import signal
from itertools import pairwise
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch

import quantail
from quantail.errors import QuantailError
from quantail.observations import ObservationSpec
from quantail.recipes import compose
from quantail.replay.store import FINAL, TERMINAL
from quantail.risk import CVaR, Neutral
from quantail.training.clock import Clock
from quantail.training.elsewhere import CHUNK, FRESH, Elsewhere, Orders, Player, actor_epsilons
from quantail.training.reporter import Reporter
from quantail.training.train import prepare
from tests.helpers.crowded import crowded, unmarked
from tests.helpers.runs import TINY, flags
from tests.helpers.runs import quantail as command

pytest.importorskip("ray")
PLAIN = {name: value for name, value in TINY.items() if name != "epsilon_steps"}
CARTPOLE = PLAIN | {
    "mlp_sizes": [16],
    "n_step": 1,
    "engine": "ray",
    "actors": 2,
    "replay_capacity": 4000,
}


class Listening(Reporter):
    def __init__(self):
        self.warnings = []

    def warned(self, sentence):
        self.warnings.append(sentence)


def follows(state, action, seen):
    """Whether CartPole leads from one state to the other."""
    env = gym.make("CartPole-v1").unwrapped
    env.reset(seed=0)
    env.state = np.array(state, np.float64)
    found = env.step(int(action))[0]
    return np.allclose(found, seen, atol=1e-4)


def every_transition_follows(store):
    """Check all that a replay holds against the dynamics; how many transitions that were."""
    checked = 0
    for lane in range(store.envs):
        places = np.arange(store.oldest[lane], store.written[lane])
        frames = np.zeros((len(places), 4), np.float32)
        store.frames.read(store.slots(np.full(len(places), lane), places), frames)
        for at in range(len(places) - 1):
            flags = store.flags[lane, places[at] % store.length]
            if not flags & (TERMINAL | FINAL):
                action = store.actions[lane, places[at] % store.length]
                assert follows(frames[at], action, frames[at + 1]), (lane, at)
            checked += not flags & FINAL
    return checked


def test_the_epsilons_of_actors_are_those_of_ape_x():
    settings = compose("small", {"engine": "ray", "actors": 8})
    expected = [0.4 ** (1 + 7 * i / 7) for i in range(8)]
    assert actor_epsilons(settings) == pytest.approx(expected)
    one = compose("small", {"engine": "ray", "actors": 1})
    assert actor_epsilons(one) == pytest.approx([0.4**4.5])  # between the two ends
    assert actor_epsilons(compose("minatar", {"engine": "ray", "agent": "rainbow"})).max() == 0


def test_the_schedule_of_epsilon_is_refused_where_it_has_no_effect():
    with pytest.raises(QuantailError, match="epsilon_end has no effect here"):
        compose("small", {"engine": "ray", "epsilon_end": 0.3})


class LostError(Exception):
    """As Ray's: what an actor sent is lost with its machine."""


def test_an_actor_whose_word_is_lost_is_replaced_and_one_that_always_is_ends_the_run():
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

    gathering = object.__new__(Elsewhere)
    said, cut = [], []
    gathering.ray, gathering.warn = Cluster, said.append
    gathering.cut = lambda lane, frame: cut.append(lane)
    gathering._hire = lambda index: gathering.pending.update({object(): index})
    gathering.info = SimpleNamespace(
        settings=compose("small", {"engine": "ray", "actors": 2, "envs": 2}),
        observation=ObservationSpec((4,), "float32", "vector"),
    )
    gathering.learner, gathering.clock = SimpleNamespace(updates=0), Clock()
    gathering.exploring, gathering.pending, gathering.waited = True, {object(): 1}, 0.0
    gathering.deaths, gathering.lives = {0: 0, 1: 0}, {0: 0, 1: 0}
    gathering.seen, gathering.open = np.zeros((4, 4)), np.array([True, True, True, False])
    assert gathering.gather(0.0) == []
    assert cut == [2]
    assert gathering.lives == {0: 0, 1: 1}
    assert gathering.gather(0.0) == []
    with pytest.raises(QuantailError, match="actor 1 cannot begin to play: with its node"):
        gathering.gather(0.0)
    assert len(said) == 2


def test_the_engine_brings_prioritized_replay_unless_another_is_asked_for():
    assert compose("small", {}).replay == "uniform"
    assert compose("small", {"engine": "ray"}).replay == "prioritized"
    assert compose("small", {"engine": "ray", "replay": "uniform"}).replay == "uniform"
    with pytest.raises(QuantailError, match="actors has no effect here"):
        compose("small", {"actors": 3})


def test_a_chunk_is_what_each_environment_did_in_the_order_of_time(tmp_path):
    trainer = prepare("CartPole-v1", out=tmp_path / "run", steps=200, **TINY | {"mlp_sizes": [16]})
    info = trainer.info
    settings = info.settings.with_changes({"engine": "ray", "actors": 3, "envs": 2})
    info = type(info)(**{**vars(info), "settings": settings})
    player = Player(info, "CartPole-v1", Neutral(), index=1, life=0)
    online = trainer.learner.online.state_dict()
    weights = {name: tensor.numpy() for name, tensor in online.items()}
    chunk = player.play(Orders(0, 0.5, CVaR(0.1)), weights)
    trainer.close()
    assert len(chunk) == 2 * CHUNK
    assert player.actor.risk == CVaR(0.1)
    assert torch.equal(
        next(player.actor.network.parameters()), next(trainer.learner.online.parameters())
    )
    for lane in (2, 3):
        mine = [one for one in chunk if one.env == lane]
        assert len(mine) == CHUNK
        assert mine[0].first
        for one, after in pairwise(mine):
            assert after.first == (one.terminated or one.truncated)
            assert after.first or np.array_equal(one.next_frame, after.frame)
            assert follows(one.frame, one.action, one.next_frame)


def test_a_killed_actor_is_replaced_and_no_transition_straddles_its_death(tmp_path):
    heard = Listening()
    trainer = prepare("CartPole-v1", out=tmp_path / "run", steps=10**6, reporter=heard, **CARTPOLE)
    written, gathering = trainer.store.written, trainer.gathering
    gathering.start()
    assert trainer.epsilon == 1.0
    trainer.step()
    assert {
        gathering.ray.get(actor.about.remote())[1].epsilon for actor in gathering.actors.values()
    } == {1}
    gathering.turn(CVaR(0.3))
    while trainer.steps < 800 or not written[1]:
        trainer.step()
    for index, actor in gathering.actors.items():
        orders = gathering.ray.get(actor.about.remote())[1]
        assert orders.epsilon == gathering.epsilons[index]
        assert orders.version >= FRESH
        assert orders.risk == CVaR(0.3)
    assert trainer.epsilon == pytest.approx(gathering.epsilons.mean())
    os.kill(gathering.ray.get(gathering.actors[1].about.remote())[0], signal.SIGKILL)
    while not heard.warnings:
        trainer.step()
    assert heard.warnings == [
        "actor 1 was lost and is replaced; its episode is cut where it was last heard of."
    ]
    before = int(written[1])
    while written[1] < before + 2 * CHUNK:  # until the new one has reported twice
        trainer.step()
    assert trainer.learner.updates > 50
    trainer.store.check_valid()
    assert every_transition_follows(trainer.store) > 500

    # The run goes on from its checkpoint, with new actors.
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


def test_an_environment_that_fails_in_an_actor_is_told_in_one_sentence(tmp_path):
    with pytest.raises(
        QuantailError, match=r"actor \d failed: .*failed in step: ValueError: out of luck"
    ):
        quantail.train(Failing, out=tmp_path / "run", steps=400, **CARTPOLE)


def test_without_ray_or_without_its_cluster_there_is_one_sentence_and_no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(QuantailError, match=r"no Ray cluster answers at 127.0.0.1:9"):
        quantail.train("CartPole-v1", out=tmp_path / "run", steps=400, **CARTPOLE)
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(QuantailError, match=r"pip install 'quantail\[ray\]'"):
        quantail.train("CartPole-v1", out=tmp_path / "run", steps=400, **CARTPOLE)
    assert not (tmp_path / "run").exists()


def test_actors_find_modules_in_the_working_folder_behind_what_is_installed(tmp_path):
    folder = crowded(tmp_path / "here")
    settings = flags(CARTPOLE | {"steps": 200})
    ended = command("train", "own_env:Own-v0", "--out", "run", "--quiet", *settings, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert unmarked(folder) is True
