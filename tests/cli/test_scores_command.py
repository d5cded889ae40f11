import csv
import json
import shutil

import numpy as np
import pytest

import quantail
from quantail.evaluation.evaluate import Evaluation
from quantail.evaluation.games import baselines
from quantail.evaluation.protocols import PROTOCOLS
from quantail.evaluation.results import COLUMNS, read_results
from quantail.risk import Neutral
from quantail.runs.results import save_result
from tests.helpers.runs import QUICK, command

NO_OP = PROTOCOLS["no-op"].label


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Tiny runs on two games: two have a result under no-op, and one also under sticky."""
    folder = tmp_path_factory.mktemp("runs")
    settings = QUICK["ALE/Breakout-v5"] | {"evaluation_episodes": 1, "steps": 100}
    for game, seed in (("Breakout", 0), ("Breakout", 1), ("Pong", 0)):
        run = folder / f"{game.lower()}-{seed}"
        quantail.train(f"ALE/{game}-v5", out=run, **settings | {"seed": seed})
    for name, protocol in (("breakout-0", "no-op"), ("breakout-1", "no-op"), ("breakout-0", "sticky")):
        # A whole game takes minutes with an agent that has not learned to start it.
        played = Evaluation(
            returns=np.array([3.0, 5.0]) + len(protocol),
            lengths=np.array([100, 120]),
            env="ALE/Breakout-v5",
            risk=Neutral(),
            protocol=PROTOCOLS[protocol],
            seed=1,
        )
        save_result(folder / name, quantail.load(folder / name), played)
    return folder


def table(tmp_path, *lines, name="mine.csv"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


def test_eval_prints_its_protocol_and_saves_it_with_the_result(runs, capsys):
    words = ("--protocol", "sticky", "--episodes", 2, "--epsilon", 1)
    assert command("eval", runs / "pong-0", *words) == 0
    said = capsys.readouterr().out
    (path,) = (runs / "pong-0" / "results").iterdir()
    saved = json.loads(path.read_text())
    protocol = PROTOCOLS["sticky"].changed(epsilon=1.0)
    assert "protocol  sticky with epsilon 1: random actions with probability 1, sticky" in said
    assert str(runs / "pong-0" / "results") in said.replace("\n", "")
    assert saved["protocol"]["hash"] == protocol.hash
    assert (saved["protocol"]["sticky"], saved["protocol"]["no_ops"]) == (0.25, 0)
    assert saved["frames"] == 400
    assert len(saved["returns"]) == 2
    assert all(-21 <= score < 0 for score in saved["returns"])
    shutil.rmtree(runs / "pong-0" / "results")


def test_runs_are_scored_by_game_next_to_the_paper(runs, capsys):
    words = ("--protocol", "no-op", "--published")
    assert command("scores", runs / "breakout-0", runs / "breakout-1", *words) == 0
    said = capsys.readouterr().out
    assert NO_OP in said
    for word in (
        "Breakout",
        "734",
        "30.50",
        "IQN (paper)",
        "median",
        "optimality gap",
        "stratified bootstrap",
    ):
        assert word in said, word


def test_results_under_different_protocols_are_refused_and_named(runs, capsys):
    assert command("scores", runs / "breakout-0", runs / "breakout-1") == 2
    said = capsys.readouterr().err
    assert "no-op v1" in said
    assert "sticky v1" in said
    assert f"Choose one with --protocol: {NO_OP}." in said


def test_for_a_run_without_a_result_the_error_says_how_to_make_one(runs, capsys):
    assert command("scores", runs / "pong-0") == 2
    assert f"quantail eval {runs / 'pong-0'} --protocol" in capsys.readouterr().err
    assert command("scores", runs / "breakout-1", "--protocol", "sticky") == 2
    assert "has no result under protocol sticky: it has no-op." in capsys.readouterr().err


def test_scores_under_other_protocols_are_not_compared_with_the_paper(runs, capsys):
    assert command("scores", runs / "breakout-0", "--protocol", "sticky", "--published") == 2
    assert "evaluate with --protocol no-op" in capsys.readouterr().err


def test_scores_survive_a_round_trip_through_csv(runs, tmp_path, capsys):
    out = tmp_path / "scores.csv"
    words = ("--protocol", "no-op", "--csv", out)
    assert command("scores", runs / "breakout-0", runs / "breakout-1", *words) == 0
    first = capsys.readouterr().out
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row["seed"] for row in rows] == ["0", "1"]
    assert command("scores", out) == 0
    assert capsys.readouterr().out == first.replace(f"written to {out}\n", "")


def test_a_game_without_a_human_score_is_named_and_the_others_counted(tmp_path, capsys):
    path = table(tmp_path, "game,score", "Pong,10", "MinAtar/Breakout-v1,5", "Carnival,3")
    assert command("scores", path) == 0
    said = capsys.readouterr().out
    assert "mine: 1 of 3 games are in the aggregates" in said
    assert "carnival, minatar/breakout" in said
    assert "mine: one seed, so there is no interval" in said


def test_no_human_score_at_all_leaves_the_raw_scores(tmp_path, capsys):
    assert command("scores", table(tmp_path, "game,score", "MinAtar/Breakout-v1,5")) == 0
    said = capsys.readouterr().out
    assert "5.00" in said
    assert "0 of 1 games" in said


def test_games_with_more_seeds_than_others_get_a_note(tmp_path, capsys):
    path = table(
        tmp_path, "game,score,seed", "Pong,10,0", "Pong,12,1", "Pong,11,2", "Alien,500,0", "Alien,600,1"
    )
    assert command("scores", path) == 0
    assert "in games with more than 2 seeds, only the first 2 count" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["game,points", "Pong,3"], "lacks the column score"),
        (["game,score", "Pong,many"], "line 2: score takes a number"),
        (["game,score", ",3"], "line 2: game is empty"),
        (["game,score", "Pong,nan"], "line 2: score takes a number"),
        (["game,score", "Pong,3", "Pong,4"], "two scores for pong with seed 0"),
        (["game,score,protocol", "Pong,3,no-op v1 (a)", "Alien,3,sticky v1 (b)"], "different protocols"),
        ([""], "lacks the column"),
        (["gmae,score", "Pong,3"], "lacks the column game: the columns are agent, game"),
        (["gmae,score", "Pong,3"], "Did you mean 'game'?"),
        (["game,score,protcol", "Pong,3,no-op"], "has unknown columns, 'protcol'"),
        (["game,score,protcol", "Pong,3,no-op"], "Did you mean 'protocol'?"),
        (["game,score", "Pong,3", "Alien,1,234"], "line 3 has more cells than the table has columns"),
    ],
)
def test_an_invalid_table_is_refused_in_one_sentence(tmp_path, capsys, lines, said):
    assert command("scores", table(tmp_path, *lines)) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1


def test_a_missing_table_and_missing_sources_are_refused_in_one_sentence(tmp_path, capsys):
    assert command("scores", tmp_path / "none.csv") == 2
    assert capsys.readouterr().err == f"quantail: there is no table at {tmp_path / 'none.csv'}.\n"
    assert command("scores") == 2
    assert "--published" in capsys.readouterr().err


def test_the_command_checks_the_papers_tables(capsys):
    assert command("scores", "--published") == 0
    said = capsys.readouterr().out
    for word in (
        "79.08%",
        "1110%",
        "1889%",
        "0.1354",
        "✓",
        "✗",
        "Table 1",
        "Table 2",
        "no scores published",
    ):
        assert word in said, word


def test_thousands_separators_and_a_byte_order_mark_are_accepted(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(b'\xef\xbb\xbfgame,score\r\nPong,"1,234.5"\r\n')
    assert read_results(path)[0].score == 1234.5


def test_a_damaged_result_is_named(runs, tmp_path, capsys):
    run = shutil.copytree(runs / "breakout-1", tmp_path / "run")
    path = next((run / "results").glob("*.json"))
    path.write_text(path.read_text()[:40])
    assert command("scores", run) == 2
    assert path.name in capsys.readouterr().err


@pytest.mark.parametrize("protocol", ["human-starts v1 (346f8715e7)", "Human starts"])
def test_human_starts_use_their_own_baselines(tmp_path, capsys, protocol):
    base = baselines(True)["pong"]
    assert base != baselines()["pong"]
    path = table(tmp_path, "game,score,protocol", f"Pong,10,{protocol}")
    assert command("scores", path) == 0
    said = capsys.readouterr().out
    assert f"{base.human:,.2f}" in said
    assert f"{base.normalise(10.0):.1%}" in said


def test_different_recordings_of_one_game_are_refused_and_of_two_games_are_not(tmp_path, capsys):
    lines = ["agent,game,score,protocol,starts", "a,Pong,10,human-starts v1 (x),recording 1 by a person"]
    other = "Alien,500,human-starts v1 (x),recording 2 by a person"
    assert command("scores", table(tmp_path, *lines, f"a,{other}")) == 0
    assert command("scores", table(tmp_path, *lines, f"b,{other.replace('Alien', 'Pong')}")) == 2
    assert "pong was evaluated from different starts: recording 1 by a person" in capsys.readouterr().err


def test_for_environments_with_their_own_protocols_no_useless_choice_is_suggested(tmp_path, capsys):
    rows = ("a.csv", "CartPole-v1,9,own v1 (aa)"), ("b.csv", "MinAtar/Breakout-v1,9,own v1 (bb)")
    one, two = (table(tmp_path, "game,score,protocol", row, name=name) for name, row in rows)
    assert command("scores", one, two) == 2
    said = capsys.readouterr().err
    assert "Each result has the own protocol of its environment: show them in separate tables." in said
    assert "--protocol" not in said


def test_options_for_runs_are_refused_with_published_alone(capsys):
    for words in (("--protocol", "nonsense"), ("--starts", "abc"), ("--csv", "x.csv")):
        assert command("scores", "--published", *words) == 2
        assert f"{words[0]} needs runs or tables" in capsys.readouterr().err


def test_an_unwritable_file_is_refused_before_the_tables_are_printed(tmp_path, capsys):
    path = table(tmp_path, "game,score", "Pong,10")
    assert command("scores", path, "--csv", tmp_path / "none" / "y.csv") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"there is no folder {tmp_path / 'none'} to write y.csv into" in printed.err


def test_a_human_starts_table_names_the_source_of_its_baselines(tmp_path, capsys):
    head = "game,score,protocol,starts"
    row = "Pong,10,human-starts,recording abc by scripted player"
    assert command("scores", table(tmp_path, head, row)) == 0
    said = capsys.readouterr().out
    assert said.count("are those of Nair et al. 2015") == 3
    assert "pong was started from recording abc by scripted player" in said
    assert command("scores", table(tmp_path, "game,score", "Pong,10")) == 0
    assert "Nair" not in capsys.readouterr().out
