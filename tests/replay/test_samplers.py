"""Samplers as parts: named by a setting, built from their own configuration, asked and never guessed."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import quantail as q
from quantail.part_config import NoConfig
from quantail.replay import (
    SAMPLERS,
    PrioritizedConfig,
    PrioritizedSampler,
    Replay,
    Sampler,
    UniformSampler,
)
from tests.helpers.configs import config
from tests.helpers.replay import filled
from tests.helpers.runs import Listening, quick, same_learning


@pytest.mark.parametrize(("name", "kind"), SAMPLERS.items())
def test_the_settings_build_the_sampler_that_they_name_with_its_own_settings(name, kind):
    chosen = config(sampler=name, priority_exponent=0.25).replay.sampler
    store, generator = filled().store, np.random.default_rng(0)
    sampler = chosen.build(store, generator)
    assert chosen.find() is type(sampler) is kind
    assert (sampler.store, sampler.generator) == (store, generator)
    expected = {UniformSampler: NoConfig(), PrioritizedSampler: PrioritizedConfig(0.25)}
    assert sampler.config == expected[kind]


@dataclass(frozen=True)
class EveryThirdConfig:
    batch_size: int = 1  # a setting that other parts use too


class EveryThird(Sampler):
    """Every third stored step in turn: a sampler from outside, with state and without random numbers."""

    Config = EveryThirdConfig

    def __init__(self, store, generator, config):
        super().__init__(store, generator, config)
        self.sampled = 0

    @staticmethod
    def bytes_needed(capacity):
        return 10**6 * capacity

    def sample(self, count, can_start):
        oldest, written = self.store.oldest[0], self.store.written[0]
        step = oldest + (3 * np.arange(self.sampled, self.sampled + count)) % (written - oldest)
        self.sampled += count
        return np.zeros(count, np.int64), step

    def state_dict(self):
        return {"sampled": np.array([self.sampled])}

    def load_state_dict(self, state):
        self.sampled = int(state["sampled"][0])


def test_a_sampler_that_only_samples_gets_equal_weights_and_may_ignore_priorities():
    class Newest(Sampler):
        def sample(self, count, can_start):
            env = np.arange(count) % 2
            return env, self.store.oldest[env] + 5

    store = filled().store
    replay = Replay(store, Newest(store, np.random.default_rng(0), NoConfig()), 4, 1, 0.9)
    batch = replay.sample(importance=0.4)
    assert batch.weights.tolist() == [1.0] * 4
    assert batch.weights.dtype == torch.float32
    replay.update_priorities(batch.indices, torch.rand(4))
    assert replay.sampler.state_dict() == {}
    replay.sampler.load_state_dict({})
    assert Newest.bytes_needed(1000) == 0


def test_training_saves_and_restores_a_sampler_whatever_its_name_is(tmp_path, monkeypatch):
    monkeypatch.setitem(SAMPLERS, "uniform", EveryThird)
    settings = quick("dqn")
    q.train("CartPole-v1", out=tmp_path / "whole", steps=300, **settings)
    q.train("CartPole-v1", out=tmp_path / "half", steps=200, **settings)
    assert (tmp_path / "half/checkpoints/000000200/sampler.safetensors").exists()
    q.resume(tmp_path / "half", steps=300)
    assert same_learning(tmp_path / "whole", tmp_path / "half")
    monkeypatch.setattr(EveryThird, "load_state_dict", Sampler.load_state_dict)  # forgets its state
    q.train("CartPole-v1", out=tmp_path / "forgetful", steps=200, **settings)
    q.resume(tmp_path / "forgetful", steps=300)
    with pytest.raises(AssertionError, match="metrics"):
        same_learning(tmp_path / "whole", tmp_path / "forgetful")


def test_the_memory_of_a_run_counts_what_its_sampler_needs(tmp_path, monkeypatch):
    # 150 steps of an observation of four float32, an action, a reward and flags
    for kind, memory in ((UniformSampler, "3.8 kB"), (EveryThird, "150.0 MB")):
        monkeypatch.setitem(SAMPLERS, "uniform", kind)
        out = tmp_path / kind.__name__
        heard = Listening()
        q.train("CartPole-v1", out=out, steps=60, callbacks=[heard], **quick("dqn"))
        assert memory in heard.lines["replay"]
