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
    assert (len(one.axes), len(many.axes)) == (4, 12)
    assert (tmp_path / "one.png").stat().st_size > 10_000
    assert "right" in (tmp_path / "many.svg").read_text()


def test_the_lines_are_the_sorted_quantiles_and_the_marks_the_mean_and_the_value(agent):
    z = agent.returns(np.ones((2, 4), np.float32))
    quantiles, _, _, marks = draw_returns(z, risk="cvar:0.25").axes
    for action, line in enumerate(quantiles.lines):
        expected = np.sort(z.quantile(line.get_xdata())[:, action])
        assert line.get_ydata() == pytest.approx(expected)
    drawn = {(line.get_marker(), round(float(line.get_xdata()[0]), 5)) for line in marks.lines}
    expected = {("o", round(float(v), 5)) for v in z.mean()} | {
        ("D", round(float(v), 5)) for v in z.value("cvar:0.25")
    }
    assert drawn == expected


def test_the_weights_are_a_strip_of_their_own_and_densities_have_an_axis(agent):
    figure = draw_returns(agent.returns(np.ones((2, 4), np.float32)), risk="cvar:0.25")
    figure.draw_without_rendering()
    quantiles, density, weights, marks = figure.axes
    assert not quantiles.patches
    assert weights.patches[0].get_data().values[:25] == pytest.approx(4)
    assert weights.get_position().y1 < quantiles.get_position().y0
    assert marks.get_position().y1 < density.get_position().y0
    assert density.get_ylabel() == "probability density"
    assert len(density.get_yticks()) > 2
    for line in density.lines:
        assert np.trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(1, abs=0.05)


def test_wrong_names_and_too_many_observations_are_refused(agent):
    with pytest.raises(QuantailError, match="one for each of 2 actions"):
        draw_returns(agent.returns(np.zeros((2, 4))), names=["left"])
    with pytest.raises(QuantailError, match="up to 6 observations"):
        draw_returns(agent.returns(np.zeros((7, 2, 4))))
