"""The risk measures of behaviour, targets and evaluation, and their annealing."""

import json

import pytest
import torch

import quantail
from quantail.errors import QuantailError
from quantail.recipes import compose
from quantail.risk import CPW, CVaR, Neutral, Norm, Pow, Wang, parse_risk
from tests.helpers.runs import QUICK, command, prepare, same_learning

CARTPOLE = QUICK["CartPole-v1"] | {"n_step": 1}


def risk_config(**changes):
    config = compose("small", changes)
    return config.risk.measures(parse_risk(config.risk.risk))


@pytest.mark.parametrize(
    ("measure", "half"),
    [(CVaR(0.1), CVaR(0.55)), (Wang(-0.75), Wang(-0.375)), (Pow(2.0), Pow(1.0)), (CPW(0.7), CPW(0.85))],
)
def test_eta_is_annealed_linearly_from_neutral_to_its_final_value(measure, half):
    tau = torch.linspace(0.01, 0.99, 30)
    assert torch.allclose(measure.annealed(0.0)(tau), tau, atol=1e-6)
    assert measure.annealed(0.5).eta == pytest.approx(half.eta)
    assert measure.annealed(1.0) == measure


def test_each_part_of_a_run_has_its_own_risk_measure():
    found = risk_config(risk="cvar:0.1", behaviour_risk="neutral", evaluation_risk="wang:-1")
    assert found.behaviour == Neutral()
    assert found.target == CVaR(0.1)
    assert found.evaluation == Wang(-1.0)


def test_the_actor_the_target_and_the_agent_use_their_risk_measures(tmp_path):
    parts = {"behaviour_risk": "wang:1", "target_risk": "cvar:0.5", "evaluation_risk": "cpw:0.71"}
    trainer = prepare("CartPole-v1", out=tmp_path / "run", steps=200, **CARTPOLE, **parts)
    assert trainer.collector.actor.risk == Wang(1.0)
    assert trainer.learner.risk == CVaR(0.5)
    assert trainer.agent.risk == CPW(0.71)
    trainer.run()
    assert quantail.load(tmp_path / "run").risk == CPW(0.71)
    assert "cpw:0.71" in (tmp_path / "run/evaluations.csv").read_text()


def test_a_measure_is_annealed_after_learning_starts_and_evaluation_uses_it_in_full(tmp_path):
    trainer = prepare(
        "CartPole-v1",
        out=tmp_path / "run",
        steps=200,
        risk="cvar:0.2",
        risk_anneal_steps=100,
        **CARTPOLE,
    )
    trainer.start()
    seen = {}
    while trainer.steps < 200:
        trainer.step()
        seen[trainer.steps] = trainer.learner.risk.eta
        assert trainer.collector.actor.risk.eta == trainer.learner.risk.eta
    trainer.close()
    assert trainer.agent.risk == CVaR(0.2)
    assert seen[61] == 1.0  # the first step after learning_starts, which is 60
    assert seen[111] == pytest.approx(0.6)
    assert seen[161] == seen[200] == 0.2


def test_a_run_with_annealing_resumes_bit_for_bit(tmp_path):
    settings = CARTPOLE | {"risk": "cvar:0.1", "risk_anneal_steps": 150, "evaluation_risk": "neutral"}
    quantail.train("CartPole-v1", out=tmp_path / "long", steps=200, **settings)
    quantail.train("CartPole-v1", out=tmp_path / "short", steps=100, **settings)
    quantail.resume(tmp_path / "short", steps=200)
    assert same_learning(tmp_path / "long", tmp_path / "short")


def test_measures_are_saved_in_their_canonical_text_form(tmp_path):
    preset = tmp_path / "mine.toml"
    preset.write_text('risk = "CVaR:.10"\ntarget_risk = "Wang:0.50"\n')
    quantail.train("CartPole-v1", preset=str(preset), out=tmp_path / "run", steps=200, **CARTPOLE)
    kept = json.loads((tmp_path / "run/run.json").read_text())["settings"]
    assert (kept["risk"], kept["target_risk"], kept["evaluation_risk"]) == ("cvar:0.1", "wang:0.5", "")
    quantail.resume(tmp_path / "run", steps=250)


def test_the_risk_configuration_can_be_described():
    assert compose("small", {}).risk.describe() == "neutral"
    changes = {"risk": "cvar:0.1", "evaluation_risk": "neutral", "risk_anneal_steps": 2000}
    assert compose("small", changes).risk.describe() == (
        "cvar:0.1, evaluation neutral, annealed over 2,000 steps"
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"risk": "norm:3", "risk_anneal_steps": 10},
            "risk_anneal_steps takes a measure that can be annealed from neutral",
        ),
        (
            {"risk_anneal_steps": 10},
            "risk_anneal_steps has no effect while behaviour and target are neutral",
        ),
        ({"behaviour_risk": "cvar:2"}, "behaviour_risk: risk cvar:2 is out of range"),
        ({"target_risk": "nonsense"}, "target_risk: unknown risk 'nonsense'"),
    ],
)
def test_the_error_for_a_wrong_risk_measure_names_the_setting(changes, says):
    with pytest.raises(QuantailError, match=says):
        risk_config(**changes)


def test_a_wrong_risk_measure_leaves_no_folder_behind(tmp_path, capsys):
    assert command("train", "CartPole-v1", "--out", tmp_path / "run", "--evaluation-risk", "cvar:7") != 0
    assert "evaluation_risk: risk cvar:7 is out of range" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_norm_cannot_be_annealed_and_stays_unchanged():
    assert Norm(3).annealed(0.5) == Norm(3)
