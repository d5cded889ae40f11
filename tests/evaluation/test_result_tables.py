import pytest

from quantail.errors import QuantailError
from quantail.evaluation.games import baselines
from quantail.evaluation.paper_tables import paper_tables
from quantail.evaluation.result_tables import (
    aggregates_table,
    normalised_table,
    raw_table,
    with_paper,
)
from quantail.evaluation.results import Result, by_agent

SCORES = {"mine": {"pong": [10.0, 12.0], "video_pinball": [1e5, 2e5]}}


def figures(table):
    """Return aggregate -> agent -> (value, interval)."""
    found, title = {}, ""
    for row in table.rows:
        title = row[0] or title
        found.setdefault(title, {})[row[1]] = (row[2], row[3])
    return found


def test_raw_scores_are_means_over_seeds():
    rows = {row[0]: row[1:] for row in raw_table(SCORES, human_starts=False).rows}
    assert rows["Pong"] == ["-20.70", "14.60", "11.00"]
    assert rows["Video Pinball"][-1] == "150,000"


def test_the_baselines_are_those_of_the_protocol():
    (row,) = normalised_table({"mine": {"pong": [10.0]}}, human_starts=True).rows
    assert row[1] == f"{baselines(True)['pong'].normalise(10.0):.1%}"
    (row,) = normalised_table({"mine": {"pong": [10.0]}}, human_starts=False).rows
    assert row[1] == f"{baselines()['pong'].normalise(10.0):.1%}"


def test_both_means_come_last_with_the_intervals_of_their_own_convention():
    found = figures(aggregates_table(SCORES, human_starts=False))
    assert list(found) == [
        "median", "IQM", "human gap", "optimality gap", "mean (VP 16,256.9)", "mean (VP 0)"
    ]  # fmt: skip
    for title in ("mean (VP 16,256.9)", "mean (VP 0)"):
        value, interval = found[title]["mine"]
        low, high = (float(part.rstrip("%")) for part in interval.split(" to "))
        assert low <= float(value.rstrip("%")) <= high


def test_without_video_pinball_there_is_one_mean():
    found = figures(aggregates_table({"mine": {"pong": [10.0]}}, human_starts=False))
    assert found["mean"]["mine"] == ("87.0%", "–")
    assert "mean (VP 0)" not in found


def test_from_human_starts_better_play_in_video_pinball_gives_a_better_score():
    worse, better = (
        figures(aggregates_table({"mine": {"video_pinball": [score]}}, human_starts=True))
        for score in (1e5, 5e5)
    )
    for figure in ("median", "IQM", "mean (VP 0)"):
        values = [float(found[figure]["mine"][0].rstrip("%")) for found in (worse, better)]
        assert 0 < values[0] < values[1]


def test_the_papers_scores_are_added_only_for_the_same_games():
    agents = with_paper({"mine": {"pong": [10.0], "minatar/breakout": [3.0]}})
    assert agents["IQN (paper)"] == {"pong": [21.0]}
    with pytest.raises(QuantailError, match="rename your agent"):
        with_paper({"IQN (paper)": {"pong": [1.0]}})


def test_other_published_tables_are_normalised_by_their_own_protocol():
    *_, others, zoo, _ = paper_tables()
    rows = {(row[2], row[1]): row for row in others.rows}
    assert rows["rainbow-table6", "Rainbow"][3:] == ["54", "227.0%", "270.8%", "0.168", "765.5%"]
    assert rows["pfrl-iqn", "IQN"][4] == "213.6%"
    assert rows["prioritized-human-starts", "Prioritized DDQN (prop, tuned)"][4] == "127.6%"
    assert [row[0] for row in zoo.rows][:2] == ["Rainbow", "IQN"]
    assert zoo.rows[1][1] == "172.2%"


def test_scores_are_in_the_order_of_their_seeds():
    rows = [Result("mine", "pong", str(seed), float(seed)) for seed in (10, 2, 0)]
    assert by_agent(rows) == {"mine": {"pong": [0.0, 2.0, 10.0]}}


def test_published_aggregates_are_shown_at_their_largest_number_of_frames():
    rows = {(row[1], row[0], row[3]): row[4:] for row in paper_tables()[-1].rows}
    assert rows["rliable-ale", "IQN", "training return"] == [
        "55", "200M", "124.1%", "175.6%", "0.206", "0.207"
    ]  # fmt: skip
    assert rows["dopamine", "IQN (Impala)", "training return"] == [
        "55", "200M", "140.0%", "218.7%", "0.183", "–"
    ]  # fmt: skip
    assert rows["mmdrl", "MMDQN", "evaluation, best of training"][3] == "295.9%*"
    assert rows["btr", "BTR", "best single evaluation"][3] == "740.0%"
