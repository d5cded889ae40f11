"""The figure of an agent's predicted returns, in one call."""

import numpy as np
import pytest

import quantail
from quantail.errors import QuantailError
from quantail.viewing import draw_returns


@pytest.fixture(scope="module")
def agent(cartpoles):
    return quantail.load(cartpoles / "iqn-0")


def test_one_call_draws_every_action_of_one_observation_or_of_a_batch(agent, tmp_path):
    batch = np.zeros((3, 2, 4), np.float32)
    one = draw_returns(agent.returns(batch[0]), tmp_path / "one.png")
    many = draw_returns(agent.returns(batch), tmp_path / "many.svg", names=["left", "right"])
    assert (len(one.axes), len(many.axes)) == (2, 6)
    assert (tmp_path / "one.png").stat().st_size > 10_000
    assert "right" in (tmp_path / "many.svg").read_text()


def test_the_lines_are_the_quantiles_and_the_marks_the_mean_and_the_value(agent):
    z = agent.returns(np.ones((2, 4), np.float32))
    axes = draw_returns(z, risk="cvar:0.25").axes[0]
    curves = [line for line in axes.lines if len(line.get_xdata()) > 1]
    marks = {(line.get_marker(), round(float(line.get_ydata()[0]), 5)) for line in axes.lines} - {
        (line.get_marker(), round(float(line.get_ydata()[0]), 5)) for line in curves
    }
    for action, line in enumerate(curves):
        assert line.get_ydata() == pytest.approx(z.quantile(line.get_xdata())[:, action])
    expected = {("o", round(float(v), 5)) for v in z.mean()} | {
        ("D", round(float(v), 5)) for v in z.value("cvar:0.25")
    }
    assert marks == expected


def test_wrong_names_and_too_many_observations_are_refused(agent):
    with pytest.raises(QuantailError, match="one for each of 2 actions"):
        draw_returns(agent.returns(np.zeros((2, 4))), names=["left"])
    with pytest.raises(QuantailError, match="up to 6 observations"):
        draw_returns(agent.returns(np.zeros((7, 2, 4))))
