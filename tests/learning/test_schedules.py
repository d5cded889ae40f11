"""Schedules of the learning rate."""

import math

import pytest
import torch

import quantail as q
from quantail.learning.schedules import SCHEDULES, Cosine, DecayConfig, Linear
from quantail.recipes import compose
from quantail.risk.config import RiskMeasures
from quantail.training.schedules import Schedules
from tests.helpers.runs import quick


@pytest.mark.parametrize("final", [0.0, 0.1])
@pytest.mark.parametrize("progress", [0.0, 0.25, 0.5, 1.0])
def test_schedules_have_their_closed_forms(progress, final):
    config = DecayConfig(final)
    assert SCHEDULES["constant"]().factor(progress) == 1.0
    assert Linear(config).factor(progress) == pytest.approx(1 - (1 - final) * progress)
    half = (1 + math.cos(math.pi * progress)) / 2
    assert Cosine(config).factor(progress) == pytest.approx(final + (1 - final) * half)


def schedules(steps, schedule):
    settings = compose("small", {"steps": steps, "learning_rate": 0.5})
    neutral = q.Neutral()
    return Schedules(settings, RiskMeasures(neutral, neutral, neutral), schedule)


def test_a_constant_learning_rate_is_never_set():
    assert schedules(1000, SCHEDULES["constant"]()).learning_rate(500) is None


def test_the_rate_follows_the_present_length_of_the_run():
    assert schedules(1000, Linear()).learning_rate(500) == 0.25
    assert schedules(2000, Linear()).learning_rate(500) == 0.375
    assert schedules(1000, Linear()).learning_rate(1100) == 0.0  # several environments may overshoot


class Stop(q.Callback):
    def on_step(self, progress):
        if progress.steps >= 130:
            progress.stop("half way")


def weights(agent):
    return torch.cat([parameter.flatten() for parameter in agent.network.parameters()])


def test_a_run_with_a_schedule_learns_otherwise_and_resumes_exactly(tmp_path):
    settings = quick("iqn") | {"steps": 200}
    constant = weights(q.train("CartPole-v1", out=tmp_path / "constant", **settings))
    settings["schedule"] = "linear"
    whole = weights(q.train("CartPole-v1", out=tmp_path / "whole", **settings))
    q.train("CartPole-v1", out=tmp_path / "half", callbacks=[Stop()], **settings)
    assert torch.equal(whole, weights(q.resume(tmp_path / "half")))
    assert not torch.equal(whole, constant)
