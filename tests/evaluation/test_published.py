import csv

import pytest

from quantail.evaluation.games import REFERENCE, baselines, game_of
from quantail.evaluation.published import (
    published_aggregates,
    published_curves,
    published_results,
    published_scores,
    sources,
    table_1,
    table_2,
)
from quantail.evaluation.scores import normalise

TABLES = ("scores", "curves", "median_curves", "aggregates")


def rows(name):
    with (REFERENCE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("table", TABLES)
def test_every_published_value_names_a_source_with_its_protocol_and_origin(table):
    for row in rows(table):
        source = sources()[row["source"]]
        assert source.protocol in (
            "no-op", "sticky", "human-starts", "minatar", "library", "atari-100k"
        )  # fmt: skip
        assert source.measured
        assert source.origin


@pytest.mark.parametrize("table", ["scores", "curves"])
def test_games_have_one_spelling(table):
    for game in {row["game"] for row in rows(table)}:
        assert game_of(game) == game


def test_every_source_is_used():
    used = {row["source"] for table in TABLES for row in rows(table)}
    assert used == set(sources())


def test_the_papers_tables_agree_with_the_data_exactly_where_the_notes_say():
    verdicts = {(row.agent, figure): row.agrees(figure) for row in table_1() for figure in row.printed}
    agreeing = {key for key, agrees in verdicts.items() if agrees}
    assert agreeing == {("dqn", "median"), ("dqn", "mean"), ("c51", "median"), ("c51", "mean")}
    assert [row.agent for row in table_2() if row.agrees("median")] == ["prioritized-dqn"]
    without = [row.agent for row in [*table_1(), *table_2()] if not row.computed]
    assert without == ["prioritized-dqn", "iqn"]


def test_the_papers_tables_are_as_printed():
    printed = {row.agent: tuple(row.printed.values()) for row in table_1()}
    assert printed["iqn"] == (218, 0.141, 1019)  # median, gap, mean
    assert printed["rainbow"] == (230, 0.144, 1189)
    medians = {row.agent: row.printed["median"] for row in table_2()}
    assert list(medians.values()) == [68, 128, 116, 125, 153, 162]


def test_c51_has_scores_for_all_57_games():
    assert published_scores("c51-no-op")["C51"].keys() == baselines().keys()


def test_curves_increase_in_frames_and_lie_within_their_bounds():
    curves = published_curves("breakout")
    assert {"IQN", "QR-DQN", "DQN"} <= {curve.agent for curve in curves}
    for curve in curves:
        assert (curve.frames[1:] > curve.frames[:-1]).all()
        if curve.low is not None and curve.high is not None:
            assert (curve.low <= curve.scores + 1e-2).all()
            assert (curve.scores <= curve.high + 1e-2).all()
    assert published_curves("minatar/breakout")
    assert published_curves("nothing") == []


def test_single_scores_of_a_game_come_with_their_source():
    found = {(source.name, agent): score for source, agent, score in published_results("alien")}
    assert found["pfrl-iqn", "IQN"] == 11625.6
    assert found["rainbow-table6", "Rainbow"] == 9491.7


def aggregate_of(source, agent, frames, measured):
    (found,) = [
        one.figures
        for one in published_aggregates()
        if (one.source.name, one.agent, one.frames) == (source, agent, frames)
        and one.measured.startswith(measured)
    ]
    return found


def test_published_aggregates_agree_with_the_shipped_scores():
    for agent in ("IQN", "C51", "Rainbow", "M-IQN"):
        scores = published_scores("rliable-ale")[agent]
        found = normalise({game: [score] for game, score in scores.items()}).aggregates()
        published = aggregate_of("rliable-ale", agent, 200_000_000, "training")
        for figure in ("median", "human_gap", "mean", "mean_random_zero"):
            assert published[figure] == pytest.approx(found[figure], abs=2e-3), (agent, figure)


@pytest.mark.parametrize(
    ("source", "agent", "measured", "missing"),
    [("dopamine", "IQN", "training", 2), ("dopamine", "QR-DQN (Impala)", "training", 2),
     ("mmdrl", "QR-DQN", "evaluation", 0)],
)  # fmt: skip
def test_published_aggregates_agree_with_the_shipped_curves(source, agent, measured, missing):
    scores = {}
    for game in baselines():
        for curve in published_curves(game):
            if (curve.source.name, curve.agent) == (source, agent):
                at = curve.scores[curve.frames == 10_000_000]
                scores |= {game: [float(at[0])]} if len(at) else {}
    assert len(scores) == 57 - missing
    published = aggregate_of(source, agent, 10_000_000, measured)
    found = normalise(scores).aggregates()
    for figure in ("median", "human_gap", "mean"):
        assert published[figure] == pytest.approx(found[figure], abs=2e-3), figure


def test_every_aggregate_states_its_conditions():
    for one in published_aggregates():
        assert one.figures
        assert one.measured
        assert one.protocol.startswith(one.source.protocol)
        assert (one.iqm_over != "") == ("iqm" in one.figures)
    rows = [(one.source.name, one.agent, one.measured, one.frames) for one in published_aggregates()]
    assert len(set(rows)) == len(rows)
