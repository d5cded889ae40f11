"""Acting on Ray: a real cluster of this machine's cores, and actors that are really killed."""

import os
import signal
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
import torch
from runs import TINY

import quantail
from quantail.errors import QuantailError
from quantail.recipes import compose
from quantail.risk import CVaR, Neutral
from quantail.training.elsewhere import CHUNK, Orders, Player, actor_epsilons
from quantail.training.reporter import Reporter
from quantail.training.train import prepare

pytest.importorskip("ray")
CARTPOLE = TINY | {"mlp_sizes": [16], "n_step": 1, "engine": "ray", "actors": 2, "replay_capacity": 4000}


class Listening(Reporter):
    def __init__(self, advanced=None):
        self.warnings, self._advanced = [], advanced

    def warned(self, sentence):
        self.warnings.append(sentence)

    def advanced(self, status):
        if self._advanced:
            self._advanced(status)


def follows(state, action, seen):
    """Whether CartPole leads from one state to the other."""
    env = gym.make("CartPole-v1").unwrapped
    env.reset(seed=0)
    env.state = np.array(state, np.float64)
    found = env.step(int(action))[0]
    return np.allclose(found, seen, atol=1e-4)


def test_the_epsilons_of_actors_are_those_of_ape_x():
    settings = compose("small", {"engine": "ray", "actors": 8})
    expected = [0.4 ** (1 + 7 * i / 7) for i in range(8)]
    assert actor_epsilons(settings) == pytest.approx(expected)
    assert actor_epsilons(compose("small", {"engine": "ray", "actors": 1})) == pytest.approx([0.4])
    assert actor_epsilons(compose("minatar", {"engine": "ray", "agent": "rainbow"})).max() == 0


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
    killed = []

    def kill(status):
        if status.steps > 500 and not killed:
            actor = trainer.gathering.actors[1]
            killed.append(trainer.gathering.ray.get(actor.process.remote()))
            os.kill(killed[0], signal.SIGKILL)

    heard = Listening(kill)
    trainer = prepare("CartPole-v1", out=tmp_path / "run", steps=1600, reporter=heard, **CARTPOLE)
    trainer.run()
    assert [w for w in heard.warnings if "actor 1 was lost and is replaced" in w]
    assert trainer.steps >= 1600
    assert trainer.learner.updates > 300
    for _ in range(40):
        batch = trainer.replay.sample()
        for row in range(len(batch.actions)):
            state, after = batch.observations[row].numpy(), batch.next_observations[row].numpy()
            assert follows(state, batch.actions[row], after) or batch.discounts[row] == 0

    # The run goes on from its checkpoint, with new actors.
    done = trainer.steps
    quantail.resume(tmp_path / "run", steps=done + 300)
    assert int((tmp_path / "run/checkpoints/last").read_text()) >= done + 300


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
