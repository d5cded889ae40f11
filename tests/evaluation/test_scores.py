import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantail.evaluation.games import baselines, game_of
from quantail.evaluation.published import paper_scores
from quantail.evaluation.scores import (
    human_gap,
    interquartile_mean,
    mean,
    median,
    normalise,
    optimality_gap,
)

rliable_metrics = pytest.importorskip("rliable.metrics")

# Aggregates of the paper's appendix table: median, human gap, mean with Video Pinball's random score
# as 0, and as in the table.
FROM_THE_APPENDIX = {
    "dqn": (79.08, 0.3444, 227.7, 432.6),
    "prioritized-dueling-dqn": (172.1, 0.2169, 591.9, 1120),
    "qr-dqn": (210.7, 0.1670, 915.2, 1702),
    "iqn": (237.8, 0.1354, 1110, 1889),
}


@pytest.mark.parametrize("agent", FROM_THE_APPENDIX)
def test_the_appendix_table_gives_the_known_aggregates_under_both_conventions(agent):
    scores = paper_scores()[agent]
    assert len(scores) == 57
    found = normalise({game: [score] for game, score in scores.items()}).aggregates()
    percent = (100 * found["median"], 100 * found["mean_random_zero"], 100 * found["mean"])
    figures = [f"{value:.4g}" for value in percent]
    figures.insert(1, f"{found['human_gap']:.4f}")
    assert figures == [f"{v:.4f}" if v < 1 else f"{v:.4g}" for v in FROM_THE_APPENDIX[agent]]


def matrices(least_runs=1):
    return st.tuples(st.integers(least_runs, 5), st.integers(1, 9), st.integers(0, 2**31)).map(
        lambda size: np.random.default_rng(size[2]).normal(0.8, 1.0, size[:2])
    )


@given(matrices())
def test_aggregates_agree_with_rliable(scores):
    assert median(scores) == pytest.approx(rliable_metrics.aggregate_median(scores))
    assert mean(scores) == pytest.approx(rliable_metrics.aggregate_mean(scores))
    assert interquartile_mean(scores) == pytest.approx(rliable_metrics.aggregate_iqm(scores))
    assert optimality_gap(scores) == pytest.approx(rliable_metrics.aggregate_optimality_gap(scores))


def test_the_human_gap_is_clipped_at_both_ends_and_uses_the_mean_over_seeds():
    scores = np.array([[-3.0, 0.25, 7.0, 0.0], [-3.0, 0.75, 9.0, 2.0]])  # [seeds, games]
    assert human_gap(scores) == pytest.approx((1 + 0.5 + 0 + 0) / 4)


def test_random_play_is_0_and_human_play_is_1_in_every_game_for_both_kinds_of_start():
    for human_starts in (False, True):
        known = baselines(human_starts)
        assert len(known) == 57
        for base in known.values():
            assert base.normalise(base.random) == 0
            assert base.normalise(base.human) == pytest.approx(1)
    assert baselines()["alien"] != baselines(True)["alien"]


def test_only_video_pinball_differs_between_the_conventions():
    found = normalise({"video_pinball": [100_000.0], "pong": [10.0]})
    games = list(found.games)
    pinball, pong = games.index("video_pinball"), games.index("pong")
    assert found.scores[0, pong] == found.random_zero[0, pong]
    assert found.scores[0, pinball] == pytest.approx((100_000 - 16_256.9) / (17_667.9 - 16_256.9))
    assert found.random_zero[0, pinball] == pytest.approx(100_000 / 17_667.9)


def test_a_game_without_a_human_score_is_left_out_and_named():
    found = normalise({"pong": [10.0, 12.0], "minatar/breakout": [3.0, 4.0], "carnival": [1.0, 1.0]})
    assert found.games == ("pong",)
    assert found.without_human == ("minatar/breakout", "carnival")
    assert found.scores.shape == (2, 1)


def test_without_known_games_the_matrix_is_empty():
    assert normalise({"carnival": [1.0]}).scores.shape == (0, 0)


# As the paper's appendix spells them, in the order of the table of baselines.
IN_THE_PAPER = """
Alien, Amidar, Assault, Asterix, Asteroids, Atlantis, Bank Heist, Battle Zone, Beam Rider, Berzerk,
Bowling, Boxing, Breakout, Centipede, Chopper Command, Crazy Climber, Defender, Demon Attack, Double
Dunk, Enduro, Fishing Derby, Freeway, Frostbite, Gopher, Gravitar, H.E.R.O., Ice Hockey, James Bond,
Kangaroo, Krull, Kung-Fu Master, Montezuma’s Revenge, Ms. Pac-Man, Name This Game, Phoenix,
Pitfall!, Pong, Private Eye, Q*Bert, River Raid, Road Runner, Robotank, Seaquest, Skiing, Solaris,
Space Invaders, Star Gunner, Surround, Tennis, Time Pilot, Tutankham, Up and Down, Venture, Video
Pinball, Wizard Of Wor, Yars’ Revenge, Zaxxon
"""


def test_every_game_is_recognised_as_the_paper_spells_it():
    spelled = [name.strip() for name in IN_THE_PAPER.replace("\n", " ").split(",")]
    assert [game_of(name) for name in spelled] == list(baselines())


@pytest.mark.parametrize(
    ("name", "game"),
    [
        ("Montezuma's Revenge", "montezuma_revenge"),
        ("ALE/MontezumaRevenge-v5", "montezuma_revenge"),
        ("UpNDown-v4", "up_n_down"),
        ("James Bond 007", "jamesbond"),
        ("Tutenkham", "tutankham"),
        ("Robot Tank", "robotank"),
        ("BreakoutDeterministic-v4", "breakout"),
        ("ale/pong", "pong"),
        ("minatar/Breakout-v1", "minatar/breakout"),
        ("ALE/MsPacman-v5", "ms_pacman"),
        ("MsPacmanNoFrameskip-v4", "ms_pacman"),
        ("Ms. Pacman", "ms_pacman"),
        ("Yar's Revenge", "yars_revenge"),
        ("ALE/AirRaid-v5", "air_raid"),
        ("MinAtar/SpaceInvaders-v1", "minatar/space_invaders"),
        ("MinAtar/Breakout-v1", "minatar/breakout"),
    ],
)
def test_every_name_of_a_game_has_one_canonical_spelling(name, game):
    assert game_of(name) == game
    assert game_of(game) == game


def test_runs_stay_with_their_games():
    raw = {"pong": [-20.7, 14.6, 14.6], "alien": [227.8, 227.8, 7127.7]}  # random and human scores
    assert normalise(raw).scores == pytest.approx(np.array([[0, 0], [1, 0], [1, 1]]))


def test_human_starts_have_their_own_baselines_and_count_video_pinball_from_zero():
    base = baselines(True)["alien"]
    found = normalise({"alien": [base.human], "video_pinball": [15641.1]}, human_starts=True)
    assert found.scores == pytest.approx(np.array([[1.0, 1.0]]))
    assert found.as_in_table[0, 1] == pytest.approx(1.0)
    better = normalise({"video_pinball": [500_000.0]}, human_starts=True)
    assert better.scores[0, 0] == pytest.approx(500_000 / 15641.1)
    assert better.as_in_table[0, 0] < 0  # random play beats the human, so the sign is reversed
    assert better.aggregates()["median"] == better.scores[0, 0]
    assert better.aggregates()["mean"] == better.as_in_table[0, 0]


def test_in_games_with_more_runs_only_the_first_count():
    found = normalise({"pong": [1.0, 2.0, 3.0], "alien": [500.0, 600.0]})
    assert found.runs == 2
    assert found.scores[:, 0] == pytest.approx([baselines()["pong"].normalise(v) for v in (1.0, 2.0)])
