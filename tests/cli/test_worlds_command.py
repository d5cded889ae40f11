import numpy as np
import pytest

from quantail.envs.worlds import WORLDS
from quantail.envs.worlds.exact import follow, solve
from quantail.risk import parse_risk
from tests.helpers.runs import command


def table(text, title):
    """Return the cells of a printed table, row by row, under its columns."""
    _, _, found = text.partition(title)
    lines = found.splitlines()[2:]
    columns = _cells(lines[0])
    rows = [_cells(line) for line in lines[2:]]
    return [dict(zip(columns, row, strict=True)) for row in rows[: rows.index([])]]


def _cells(line):
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_the_worlds_command_lists_and_solves_worlds(capsys):
    assert command("worlds") == 0
    assert "Quantail/WindyCliff-v0" in capsys.readouterr().out
    assert command("worlds", "WindyCliff", "--risk", "neutral", "--risk", "cvar:0.1") == 0
    said = capsys.readouterr().out
    assert "on on on on on" in said
    assert "up on on on on down" in said
    assert command("worlds", "Cliff") == 2
    said = capsys.readouterr().err
    assert "world takes RiskyBandit, WindyCliff, Chain, Stopping or Allais, not 'Cliff'" in said
    assert "Did you mean 'WindyCliff'?" in said
    assert command("worlds", "--risk", "neutral") == 2


def test_both_pairs_of_allais_are_shown_and_a_distortion_decides_them_differently(capsys):
    measures = ("--risk", "pow:-2", "--risk", "cvar:0.1", "--risk", "neutral")
    assert command("worlds", "Allais", *measures) == 0
    said = capsys.readouterr().out
    assert table(said, "the best action in each state") == [
        {"state": "first pair", "pow:-2": "safer", "cvar:0.1": "safer", "neutral": "gamble"},
        {"state": "second pair", "pow:-2": "gamble", "cvar:0.1": "safer = gamble", "neutral": "gamble"},
    ]
    paths = [row["most likely actions"] for row in table(said, "under each risk measure (γ 0.99)")]
    assert paths == ["safer | gamble", "safer | safer", "gamble | gamble"]
    assert "an equals sign" in said
    assert "the coin" not in said  # there is nothing to choose


@pytest.mark.parametrize("name", ["RiskyBandit", "WindyCliff", "Chain", "Stopping"])
def test_no_other_action_is_worth_more_than_the_one_that_is_shown(name, capsys):
    assert command("worlds", name, "--risk", "cpw:0.71") == 0
    rows = table(capsys.readouterr().out, "the best action in each state")
    world, risk = WORLDS[f"Quantail/{name}-v0"](), parse_risk("cpw:0.71")
    states = {world.describe(state): state for state in world.states}
    assert len(states) == len(world.states)  # every state has a name of its own
    best = solve(world, risk).policy
    for row in rows:
        state = states[row["state"]]
        values = [
            float(risk.value(follow(world, {**best, state: action}).distribution(state)))
            for action in range(len(world.actions))
        ]
        for shown in row["cpw:0.71"].split(" = "):
            assert values[world.actions.index(shown)] == pytest.approx(np.max(values))
    assert {row["state"] for row in rows} == set(states)
