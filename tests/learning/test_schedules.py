"""Schedules of the learning rate."""

import math

import pytest
import torch

import quantail as q
from quantail.learning.schedules import SCHEDULES, Cosine, DecayConfig, Linear, Schedule
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


class Without(Schedule):
    """Has no factor."""


class Made(Schedule):
    """Its factor is made by a function."""

    make = None

    def factor(self, progress):
        return type(self).make(progress)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda progress: -1, "its factor at progress 0 takes a number of at least 0, not -1."),
        (lambda progress: 1 - 2 * progress, "its factor at progress 1 takes a number of at least 0"),
        (lambda progress: "x", "its factor at progress 0 takes a number of at least 0, not 'x'."),
        (lambda progress: math.nan, "its factor at progress 0 takes a number of at least 0, not nan."),
        (lambda progress: {}["x"], "fails to give a factor at progress 0 (KeyError: 'x')."),
    ],
)
def test_a_schedule_from_outside_that_fails_is_named_before_the_run_starts(
    make, says, tmp_path, monkeypatch
):
    monkeypatch.setattr(Made, "make", staticmethod(make))
    with pytest.raises(q.QuantailError) as error:
        q.train("CartPole-v1", out=tmp_path / "run", schedule=Made, **quick("iqn") | {"steps": 100})
    assert "schedule tests.learning.test_schedules:Made" in str(error.value)
    assert says in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_schedule_without_a_factor_is_named(tmp_path):
    with pytest.raises(q.QuantailError, match=r"Without fails to give a factor .*NotImplementedError"):
        q.train("CartPole-v1", out=tmp_path / "run", schedule=Without, **quick("iqn") | {"steps": 100})


def test_a_schedule_is_checked_at_every_update(monkeypatch):
    monkeypatch.setattr(Made, "make", staticmethod(lambda progress: 1 if progress in (0, 1) else -1))
    with pytest.raises(q.QuantailError, match=r"its factor at progress 0.5 takes .*, not -1"):
        schedules(1000, Made()).learning_rate(500)
