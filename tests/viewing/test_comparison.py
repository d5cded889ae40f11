import shutil

import numpy as np
import pytest

from quantail.errors import QuantailError
from quantail.evaluation import Protocol
from quantail.evaluation.published import published_curves
from quantail.viewing.comparison import Series, compare, same_agent
from tests.helpers.runs import command
from tests.helpers.sealed import editing


@pytest.fixture
def far(breakout, tmp_path):
    """The Breakout run, changed as if it had been evaluated after one, two and three million frames."""
    run = shutil.copytree(breakout, tmp_path / "far")
    table = run / "evaluations.csv"
    head, _, *rows = table.read_text().splitlines()
    columns, row = head.split(","), rows[-1].split(",")
    lines = []
    for million in (1, 2, 3):
        cells = dict(zip(columns, row, strict=True)) | {
            "steps": str(million * 250_000),
            "frames": str(million * 1_000_000),
            "mean": str(10.0 * million),
        }
        lines.append(",".join(cells.values()))
    table.write_text("\n".join([head, *lines]) + "\n")
    return run


def test_a_published_curve_is_compared_at_the_frames_of_the_run(far):
    comparison = compare(far, ["published"])
    assert comparison.frames().tolist() == [1e6, 2e6, 3e6]
    table = comparison.table()
    assert table.columns == ["agent", "source", "1M", "2M", "3M"]
    assert table.rows[0] == ["iqn", str(far), "10.00", "20.00", "30.00"]
    nnabla = next(
        curve
        for curve in published_curves("breakout")
        if curve.source.name == "nnabla-rl" and curve.agent == "IQN"
    )
    row = next(row for row in table.rows if row[:2] == ["IQN", "nnabla-rl reproductions"])
    assert row[2:] == [f"{score:.2f}" for score in nnabla.scores[:3]]


def test_the_same_agent_comes_first_and_the_protocol_of_every_source_is_shown(far):
    table = compare(far, ["published"]).table()
    same = [same_agent(row[0], "iqn") for row in table.rows]
    assert same == sorted(same, reverse=True)
    assert 2 < sum(same) < len(same)
    notes = " ".join(table.notes)
    assert "Dopamine baselines: sticky, training return" in notes
    assert "nnabla-rl reproductions: no-op, evaluation" in notes
    assert f"{far}: own v1 (" in notes


def test_scores_are_interpolated_within_a_curve_and_unknown_outside_it():
    series = Series("a", "b", "c", np.array([1e6, 3e6]), np.array([2.0, 6.0]), published=True)
    assert series.at(2e6) == 4.0
    assert np.isnan(series.at(0.9e6))
    assert np.isnan(series.at(3.1e6))


def test_for_a_short_run_the_table_shows_where_the_other_curves_begin(breakout, capsys):
    assert command("compare", breakout) == 0
    said = capsys.readouterr().out
    assert "no curves to compare at the same number of frames" in said
    assert "the run has 800 frames, the others begin at 1M" in said


def test_runs_can_be_compared_with_each_other_and_drawn(cartpoles, tmp_path, capsys):
    stem = tmp_path / "curves"
    words = (cartpoles / "iqn-0", "--with", cartpoles / "dqn-0", cartpoles / "iqn-1", "--out", stem)
    assert command("compare", *words) == 0
    said = capsys.readouterr().out
    assert str(cartpoles / "dqn-0") in said
    assert stem.with_suffix(".png").stat().st_size > 5_000
    assert stem.with_suffix(".svg").exists()


@pytest.mark.parametrize("given", ["fig.v2", "fig.v2.png", "fig.v2.svg"])
def test_a_figure_is_written_where_the_command_says(cartpoles, tmp_path, capsys, given):
    words = (cartpoles / "iqn-0", "--with", cartpoles / "dqn-0", "--out", tmp_path / given)
    assert command("compare", *words) == 0
    png, svg = tmp_path / "fig.v2.png", tmp_path / "fig.v2.svg"
    assert f"drawn as {png} and {svg}\n" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {png.name, svg.name}


def test_published_curves_are_drawn_behind_the_run(far, tmp_path):
    figure = compare(far, ["published"]).figure()
    lines = figure.axes[0].lines
    assert max(line.get_xdata().max() for line in lines if len(line.get_xdata())) <= 3.3e6 / 4
    assert [line.get_label() for line in lines if "this run" in str(line.get_label())] == [
        "iqn, this run"
    ]


def test_another_game_and_a_game_without_published_curves_are_refused(cartpoles, breakout):
    with pytest.raises(QuantailError, match="is a run of ALE/Breakout-v5, not of CartPole-v1"):
        compare(cartpoles / "iqn-0", [breakout])
    with pytest.raises(QuantailError, match="no published curve of cart_pole is known"):
        compare(cartpoles / "iqn-0", ["published"])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("iqn", "IQN (Impala)", True),
        ("qr-dqn", "QR-DQN", True),
        ("iqn", "M-IQN", False),
        ("dqn", "Double DQN", False),
    ],
)
def test_names_of_the_same_agent_are_recognised(one, other, same):
    assert same_agent(one, other) is same


def test_runs_evaluated_differently_are_refused_and_named(cartpoles, tmp_path):
    other = shutil.copytree(cartpoles / "dqn-0", tmp_path / "other")
    with editing(other / "run.json") as about:
        about["protocol"] = Protocol("own", epsilon=0.5).to_dict()
    with pytest.raises(QuantailError, match="their curves cannot be compared"):
        compare(cartpoles / "iqn-0", [other])


def test_a_run_that_was_never_evaluated_has_no_curve(cartpoles, tmp_path):
    other = shutil.copytree(cartpoles / "dqn-0", tmp_path / "other")
    (other / "evaluations.csv").unlink()
    for run, others in ((cartpoles / "iqn-0", [other]), (other, [cartpoles / "iqn-0"])):
        with pytest.raises(QuantailError, match="other has not been evaluated yet"):
            compare(run, others)
