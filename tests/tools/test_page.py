"""The page that is drawn from the tables."""

import re
import shutil
from pathlib import Path

import pytest

from quantail.errors import QuantailError
from tests.tools.rows import finished
from tools.results.page import MARK, write_page
from tools.results.reading import read_plan
from tools.results.sections import sections
from tools.results.site import Site
from tools.results.status import status
from tools.results.tables import best

SHIPPED = Path(__file__).parent.parent.parent / "results"


@pytest.fixture
def site(tmp_path):
    (tmp_path / "results").mkdir()
    for name in ("queue.toml", "README.md"):
        shutil.copy(SHIPPED / name, tmp_path / "results" / name)
    return Site(tmp_path)


@pytest.fixture
def plan(site):
    return read_plan(site.results / "queue.toml")


def add(site, plan, study, count=None, **changes):
    for spec in plan.study(study).runs()[:count]:
        site.tables.record(*finished(spec, study, **changes))


def test_the_page_of_no_runs_says_so_and_keeps_what_is_written_by_hand(site, plan):
    by_hand = (site.results / "README.md").read_text().partition(MARK)[2]
    text = write_page(site, plan).read_text()
    planned = sum(len(study.runs()) for study in plan.studies)
    assert f"**0 of {planned} planned runs done.**" in text
    assert text.partition(MARK)[2] == by_hand
    assert "samples-small" in by_hand
    assert not (site.results / "figures").exists()
    assert write_page(site, plan).read_text() == text  # and again


def test_the_page_grows_with_the_rows_and_all_its_links_exist(site, plan):
    add(site, plan, "minatar", 16)  # one seed of everything, and one run more
    one = write_page(site, plan).read_text()
    assert "16 of 145 runs" in one
    assert "| iqn | 12" in one or "| iqn | 1" in one
    assert "how much scores vary" not in one  # one cell has two seeds
    assert "*DQN of the MinAtar paper, 5M frames* | *16.7* | *10.1*" in one
    add(site, plan, "minatar")
    add(site, plan, "learning-rates")
    add(site, plan, "samples", 5)
    text = write_page(site, plan).read_text()
    assert "45 of 145 runs" in text
    assert "interquartile mean" in text
    assert "0 to 3 seeds a cell" in text
    # By how the scores are made up, longer names score more.
    assert re.search(r"`qr-dqn` above `dqn` \([01]\.\d\d, 3 and 3 seeds\)", text)
    assert re.search(
        r"`iqn`: best with learning_rate [\d.]+ \(Breakout [\d.]+, Asterix [\d.]+; 4 runs", text
    )
    assert "the preset `minatar` has 0.001 for it" in text
    assert "online_samples \\ target_samples" in text
    for link in re.findall(r"\]\(([^)]+)\)", text.partition(MARK)[0]):
        assert (site.results / link).exists(), link


def test_scores_are_normalised_by_random_play_and_the_published_agent(site, plan):
    add(site, plan, "minatar")
    (section,) = [one for one in sections(plan, *site.tables.read()) if "500,000" in one.title]
    matrix, raw = section.normalised("iqn"), section.matrix("iqn")
    assert matrix.shape == raw.shape == (3, 5)
    random = section.random("MinAtar/Breakout-v1")
    assert matrix[:, 1] == pytest.approx((raw[:, 1] - random) / (10.1 - random))
    assert section.normalised("rainbow") is None


def test_a_run_that_ended_early_is_named(site, plan):
    add(site, plan, "pong", trained=500_000)
    text = write_page(site, plan).read_text()
    assert "iqn on ALE/Pong-v5, seed 0 ended after 500,000 steps." in text
    assert "how much scores vary between seeds" in text


def test_a_page_without_the_line_between_its_parts_is_not_overwritten(site, plan):
    path = site.results / "README.md"
    path.write_text("by hand")
    with pytest.raises(QuantailError, match="has no line"):
        write_page(site, plan)
    assert path.read_text() == "by hand"


def test_the_status_estimates_what_is_left_from_finished_runs(site, plan):
    assert "not measured yet: dqn (minatar), " in status(site, plan)
    add(site, plan, "minatar", 15)  # at 500 steps/s
    text = status(site, plan)
    assert re.search(r"minatar +15 of  45 runs   about 8.3 core-hours left", text)
    assert f"15 runs done, {len(plan.background()) - 15} runs left" in text
    assert "the queue is not running" in text


def test_the_best_setting_is_chosen_with_equal_games_whatever_their_scores(site, plan):
    study = plan.study("learning-rates")
    # Summed, 0.0003 would win by its -100 on one game; by shares, 0.001 does: (0.8 + 1)/2.
    scores = {"0.0003": (-100, 1), "0.001": (-110, 4), "0.003": (-150, 2)}
    for spec in study.runs():
        mean = scores[dict(spec.settings)["learning_rate"]][spec.env != "MinAtar/Breakout-v1"]
        site.tables.record(*finished(spec, study.name, mean=mean))
    (section,) = [one for one in sections(plan, *site.tables.read()) if not one.reported]
    (combination, means, runs) = best(section, "iqn")
    assert (combination, means, runs) == ((("learning_rate", "0.001"),), [-110, 4], 4)
