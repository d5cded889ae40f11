import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError
from quantail.evaluation.risk_profile import risk_profile, statistics
from quantail.risk import CVaR
from tests.helpers.agents import agent
from tests.helpers.runs import command


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40), st.floats(0.01, 1.0))
def test_cvar_is_the_mean_of_the_quantiles_below_its_level(returns, level):
    values = np.sort(np.array(returns))
    taus = (np.arange(20_000) + 0.5) / 20_000 * level
    quantiles = values[np.minimum((taus * len(values)).astype(int), len(values) - 1)]
    mean, _, cvar = statistics(ReturnDistribution.of(values), level)
    assert mean == pytest.approx(values.mean())
    assert cvar == pytest.approx(quantiles.mean(), abs=0.05)
    assert statistics(ReturnDistribution.of(values), 1.0)[2] == pytest.approx(values.mean())


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=40), st.sampled_from([0.05, 0.1, 0.25, 0.5, 1.0])
)
def test_var_is_the_least_return_with_that_share_of_episodes_at_or_below_it(returns, level):
    values = np.array(returns, float)
    found = statistics(ReturnDistribution.of(values), level)[1]
    reached = [z for z in sorted(set(returns)) if (values <= z).mean() >= level - 1e-9]
    assert found == reached[0]


def test_every_measure_plays_the_same_seeds_and_its_statistics_agree_with_the_evaluation():
    profile = risk_profile(agent(), ["neutral", "cvar:0.1"], episodes=20, level=0.25)
    assert [str(one.risk) for one in profile.played] == ["neutral", "cvar:0.1"]
    assert len({one.seed for one in profile.played}) == 1
    for one in profile.played:
        figures = profile.figures(one)
        assert figures["mean"].value == pytest.approx(one.mean)
        assert figures["CVaR(0.25)"].value == pytest.approx(one.value(CVaR(0.25)), rel=1e-3)
        for figure in figures.values():
            assert figure.low <= figure.value <= figure.high


def test_the_interval_of_the_mean_is_close_to_that_of_a_normal_distribution():
    profile = risk_profile(agent(), ["neutral"], episodes=400)
    returns = profile.played[0].returns
    figure = profile.figures(profile.played[0])["mean"]
    half = 1.96 * returns.std(ddof=1) / np.sqrt(len(returns))
    assert figure.high - figure.low == pytest.approx(2 * half, rel=0.15)


def test_the_interval_is_that_of_statistics_of_episodes_drawn_with_replacement():
    profile = risk_profile(agent(), ["neutral"], episodes=40, level=0.15)
    returns = profile.played[0].returns
    drawn = np.random.default_rng(1).choice(returns, (4_000, 40))
    worst = np.sort(drawn)[:, :6]  # 15 % of 40
    for figure, samples in zip(
        profile.figures(profile.played[0]).values(),
        (drawn.mean(axis=1), worst[:, 5], worst.mean(axis=1)),
        strict=True,
    ):
        low, high = np.quantile(samples, [0.025, 0.975])
        assert figure.low == pytest.approx(low, abs=0.1 * returns.std())
        assert figure.high == pytest.approx(high, abs=0.1 * returns.std())


def test_a_tail_of_few_episodes_gets_a_note():
    few = " ".join(risk_profile(agent(), ["neutral"], episodes=30, level=0.1).table().notes)
    assert "VaR and CVaR rest on the worst 3 of 30 episodes" in few
    enough = " ".join(risk_profile(agent(), ["neutral"], episodes=30, level=0.5).table().notes)
    assert "the worst" not in enough


def test_invalid_arguments_are_refused_with_one_sentence():
    with pytest.raises(QuantailError, match="episodes takes a whole number of at least 2"):
        risk_profile(agent(), episodes=1)
    with pytest.raises(QuantailError, match="agent takes an Agent"):
        risk_profile("runs/one")
    with pytest.raises(QuantailError, match="level takes a number above 0"):
        risk_profile(agent(), level=0)
    with pytest.raises(QuantailError, match="one risk measure or more"):
        risk_profile(agent(), [])
    with pytest.raises(QuantailError, match="cvar"):
        risk_profile(agent(), ["cvar:7"])


def test_the_command_prints_every_measure(cartpoles, capsys):
    words = ("--risk", "neutral", "--risk", "wang:-0.75", "--episodes", 5, "--level", "0.2")
    assert command("risk-profile", cartpoles / "iqn-0", *words) == 0
    said = capsys.readouterr().out
    for word in ("wang:-0.75", "CVaR(0.2)", "VaR(0.2)", "5 whole episodes", "iqn after"):
        assert word in said, word
    assert command("risk-profile", cartpoles / "iqn-0", *words, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["schema"] == 1
    assert printed["checkpoint"] in (100, 200)
    assert [one["risk"] for one in printed["risks"]] == ["neutral", "wang:-0.75"]
    first = printed["risks"][0]
    assert first["cvar"]["value"] == pytest.approx(min(first["returns"]))
    assert command("risk-profile", cartpoles / "dqn-0", "--episodes", 2) == 0
    assert "learns only the mean" in capsys.readouterr().out
    assert command("risk-profile", cartpoles / "iqn-0", "--level", "2") == 2


def test_measures_that_changed_no_episode_are_named():
    profile = risk_profile(agent(), ["neutral", "cpw:1"], episodes=4)
    (note,) = [one for one in profile.table().notes if "same episodes as" in one]
    assert note.startswith("cpw:1 played the same episodes as neutral: every return and length is equal")
    first, second = profile.played
    more = replace(profile, played=(first, *3 * [second]))
    assert "cpw:1, cpw:1 and cpw:1 played the same" in " ".join(more.table().notes)
    other = replace(profile, played=(first, replace(second, returns=second.returns + 1)))
    assert "same episodes as" not in " ".join(other.table().notes)
