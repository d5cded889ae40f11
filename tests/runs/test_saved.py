"""An agent saved without its run."""

import json

import gymnasium as gym
import numpy as np
import pytest

import quantail as q
from quantail.errors import QuantailError
from tests.helpers.runs import command

TAUS = [0.1, 0.5, 0.9]


@pytest.fixture
def agent(cartpoles):
    return q.load(cartpoles / "iqn-0")


@pytest.fixture
def observation(agent):
    return q.make("CartPole-v1", agent.config).reset(seed=0)[0]


def test_a_saved_agent_is_the_same_agent(agent, observation, tmp_path):
    agent.save(tmp_path / "saved")
    again = q.load(tmp_path / "saved")
    assert np.array_equal(again.quantiles(observation, TAUS), agent.quantiles(observation, TAUS))
    assert (again.checkpoint, again.config, again.risk) == (200, agent.config, agent.risk)
    assert q.evaluate(again, episodes=2).mean == q.evaluate(agent, episodes=2).mean


def test_it_holds_weights_and_settings_and_nothing_of_the_run_or_the_machine(agent, tmp_path):
    agent.save(tmp_path / "saved")
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    inside = "saved/checkpoints"
    assert files == {
        "saved/run.json",
        f"{inside}/last",
        f"{inside}/000000200/agent.safetensors",
        f"{inside}/000000200/state.json",
    }
    assert not {"command", "machine"} & json.loads((tmp_path / "saved/run.json").read_text()).keys()


def test_half_precision_takes_half_the_space_and_changes_little(agent, observation, tmp_path):
    agent.save(tmp_path / "full")
    agent.save(tmp_path / "half", half=True)
    file = "checkpoints/000000200/agent.safetensors"
    assert (tmp_path / "half" / file).stat().st_size < 0.7 * (tmp_path / "full" / file).stat().st_size
    here = q.load(tmp_path / "half").quantiles(observation, TAUS)
    assert here.dtype == np.float32
    assert here == pytest.approx(agent.quantiles(observation, TAUS), abs=0.02)


def test_the_risk_measure_that_the_agent_plays_by_is_saved(cartpoles, tmp_path):
    q.load(cartpoles / "iqn-0", risk="cvar:0.1").save(tmp_path / "saved")
    again = q.load(tmp_path / "saved")
    assert str(again.risk) == "cvar:0.1"
    assert again.config.risk.risk == "neutral"


def test_the_agent_of_a_training_call_knows_its_steps(tmp_path, cartpoles):
    config = q.load(cartpoles / "iqn-0").config.replace(steps=100)
    trained = q.train("CartPole-v1", out=tmp_path / "run", config=config)
    trained.save(tmp_path / "saved")
    assert q.load(tmp_path / "saved").checkpoint == trained.checkpoint == 100


def test_commands_take_a_saved_agent_but_it_cannot_be_resumed(agent, tmp_path, capsys):
    agent.save(tmp_path / "saved")
    assert command("eval", tmp_path / "saved", "--episodes", 2) == 0
    capsys.readouterr()
    assert command("resume", tmp_path / "saved", "--steps", 400) == 2
    assert "holds the weights of the agent alone" in capsys.readouterr().err


def test_an_agent_is_saved_only_to_a_new_or_an_empty_folder(agent, tmp_path):
    (tmp_path / "empty").mkdir()
    agent.save(tmp_path / "empty")
    with pytest.raises(QuantailError, match="exists already: choose another folder"):
        agent.save(tmp_path / "empty")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(QuantailError, match="exists already"):
        agent.save(tmp_path / "file")


def test_weights_that_cannot_be_stored_are_refused(agent, tmp_path):
    weight = next(agent.network.parameters())
    weight.data[0] = 1e6
    with pytest.raises(QuantailError, match="save them without half"):
        agent.save(tmp_path / "half", half=True)
    agent.save(tmp_path / "full")
    weight.data[0] = float("nan")
    with pytest.raises(QuantailError, match="not finite"):
        agent.save(tmp_path / "nan")


def test_an_agent_of_a_function_is_saved_again_and_plays_where_the_function_is_given(
    tmp_path, cartpoles
):
    def cartpole():
        return gym.make("CartPole-v1")

    config = q.load(cartpoles / "iqn-0").config.replace(steps=100)
    q.train(cartpole, out=tmp_path / "run", config=config).save(tmp_path / "one")
    q.load(tmp_path / "one", risk="cvar:0.1").save(tmp_path / "two", half=True)
    again = q.load(tmp_path / "two")
    assert str(again.risk) == "cvar:0.1"
    assert q.evaluate(again, cartpole, episodes=1).mean > 0
    one, two = (json.loads((tmp_path / x / "run.json").read_text()) for x in ("one", "two"))
    assert one["protocol"] == two["protocol"]
    with pytest.raises(QuantailError, match="was made by a function"):
        q.evaluate(again, episodes=1)
