import csv

import pytest

from quantail.evaluation.games import REFERENCE, baselines, game_of
from quantail.evaluation.published import (
    published_curves,
    published_results,
    published_scores,
    sources,
    table_1,
    table_2,
)

TABLES = ("scores", "curves", "median_curves")


def rows(name):
    with (REFERENCE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("table", TABLES)
def test_every_published_figure_names_a_source_with_its_protocol_and_origin(table):
    for row in rows(table):
        source = sources()[row["source"]]
        assert source.protocol in ("no-op", "sticky", "human-starts", "minatar", "library")
        assert source.measured
        assert source.origin


@pytest.mark.parametrize("table", ["scores", "curves"])
def test_games_have_one_spelling(table):
    for game in {row["game"] for row in rows(table)}:
        assert game_of(game) == game


def test_every_source_is_used():
    used = {row["source"] for table in TABLES for row in rows(table)}
    assert used == set(sources())


def test_the_paper_s_tables_follow_from_the_data_just_where_the_notes_say():
    verdicts = {(row.agent, figure): row.agrees(figure) for row in table_1() for figure in row.printed}
    follows = {key for key, agrees in verdicts.items() if agrees}
    assert follows == {("dqn", "median"), ("dqn", "mean"), ("c51", "median"), ("c51", "mean")}
    assert [row.agent for row in table_2() if row.agrees("median")] == ["prioritized-dqn"]
    without = [row.agent for row in [*table_1(), *table_2()] if not row.follows]
    assert without == ["prioritized-dqn", "iqn"]


def test_the_paper_s_tables_are_as_printed():
    printed = {row.agent: tuple(row.printed.values()) for row in table_1()}
    assert printed["iqn"] == (218, 0.141, 1019)  # median, gap, mean
    assert printed["rainbow"] == (230, 0.144, 1189)
    medians = {row.agent: row.printed["median"] for row in table_2()}
    assert list(medians.values()) == [68, 128, 116, 125, 153, 162]


def test_c51_s_scores_are_of_all_57_games():
    assert published_scores("c51-no-op")["C51"].keys() == baselines().keys()


def test_curves_rise_in_frames_and_have_bounds_around_them():
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
