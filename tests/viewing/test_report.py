import base64
import csv
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import quantail
from quantail.errors import QuantailError
from quantail.evaluation.evaluate import Evaluation
from quantail.evaluation.protocols import Protocol
from quantail.risk import Neutral
from quantail.runs.history import group_runs, read_history
from quantail.runs.results import save_result
from quantail.viewing import sections
from quantail.viewing.page import Report, shown_files
from quantail.viewing.report import write_report
from quantail.viewing.style import DARK, LIGHT
from tests.helpers.lottery import Lottery
from tests.helpers.runs import QUICK, command
from tests.helpers.runs import quantail as quantail_command
from tests.helpers.sealed import editing

CHROMIUM = shutil.which("chromium")


def copies(runs, target, *names):
    """Copy runs, so that a test may change them."""
    return [shutil.copytree(runs / name, target / name) for name in names]


@pytest.fixture(scope="module")
def report(cartpoles, tmp_path_factory):
    """The report of three runs, and its messages."""
    folder = tmp_path_factory.mktemp("report")
    runs = copies(cartpoles, folder, "iqn-0", "iqn-1", "dqn-0")
    said = []
    page = write_report(runs, folder / "out", say=said.append)
    return page, said


def rows(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_page_is_self_contained(report):
    page, _ = report
    text = page.read_text()
    assert len(re.findall(r'<img src="data:image/svg\+xml;base64,', text)) == len(
        re.findall("<img", text)
    )
    assert "http" not in re.sub(r'src="data:[^"]*"', "", text)
    assert "<script" not in text
    for link in re.findall(r'href="([^"#][^"]*)"', text):
        assert (page.parent / link).exists(), link


def test_every_figure_is_on_the_page_for_light_and_for_dark(report):
    page, _ = report
    text = page.read_text()
    light = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]*)"', text)
    dark = re.findall(
        r'<source media="screen and \(prefers-color-scheme: dark\)" srcset="[^,]*,([^"]*)"', text
    )
    assert len(light) == len(dark) > 3
    for one, theme in ((light, LIGHT), (dark, DARK)):
        for data in one:
            drawn = base64.b64decode(data).decode()
            assert theme.ground in drawn
            assert theme.ink in drawn
            other = DARK if theme is LIGHT else LIGHT
            assert not any(colour in drawn for colour in (other.ink, other.quiet, *other.series))


def test_every_section_is_on_the_page(report):
    text = report[0].read_text()
    for part in ("Learning", "Scores", "Predicted returns", "Training time", "Run details"):
        assert f">{part}</h2>" in text
    for fact in ("learning_rate", "own v1", "torch", "processor", "1 seed", "2 seeds", "none: one seed"):
        assert fact in text, fact


def test_figures_are_also_saved_as_png_and_svg_and_are_not_blank(report):
    folder = report[0].parent
    names = {path.stem for path in folder.glob("*.png")}
    assert names == {path.stem for path in folder.glob("*.svg")}
    assert {"learning-cartpole-v1", "returns-cartpole-v1", "time"} <= names
    assert any(name.startswith("predicted-1") for name in names)
    for name in names:
        picture = np.asarray(Image.open(folder / f"{name}.png").convert("L"))
        assert picture.std() > 10, name


def test_the_tables_are_saved_with_a_row_for_each_seed(report):
    folder = report[0].parent
    curves = rows(folder / "curves.csv")
    assert list(curves[0]) == ["env", "agent", "seed", "steps", "frames", "mean_return"]
    assert {(row["agent"], row["seed"]) for row in curves} == {("iqn", "0"), ("iqn", "1"), ("dqn", "0")}
    scores = rows(folder / "scores.csv")
    assert len(scores) == 3
    assert {row["game"] for row in scores} == {"CartPole-v1"}


def test_runs_without_a_result_are_evaluated_once_and_the_result_is_saved(report, tmp_path):
    page, said = report
    assert sum("no result yet" in sentence for sentence in said) == 3
    run = page.parent.parent / "iqn-0"
    saved = json.loads(next((run / "results").glob("*.json")).read_text())
    score = next(row for row in rows(page.parent / "scores.csv") if row["source"] == str(run))
    assert float(score["score"]) == saved["mean"] == np.mean(saved["returns"])
    again = []
    write_report([run], tmp_path, say=again.append)
    assert not any("no result yet" in sentence for sentence in again)


class Gap(quantail.Callback):
    """Report a metric of one's own."""

    def on_evaluation(self, progress):
        progress.record("gap", 475 - progress.evaluation.mean)


def test_a_metric_of_a_callback_is_drawn_below_the_learning_curve(report, tmp_path):
    run = tmp_path / "run"
    settings = QUICK["CartPole-v1"]
    quantail.train("CartPole-v1", out=run, steps=200, callbacks=[Gap()], **settings)
    page = write_report([run], evaluate_missing=False)
    assert {"metrics-cartpole-v1.png", "metrics-cartpole-v1.svg"} <= shown_files(page)
    text = page.read_text()
    learning, metrics = text.index("mean raw return of evaluations"), text.index("metrics of the head")
    assert learning < metrics < text.index(">Scores</h2>")
    assert not list(report[0].parent.glob("metrics-*"))  # the report of runs without new metrics


def test_a_report_can_skip_the_evaluation(cartpoles, tmp_path, capsys):
    (run,) = copies(cartpoles, tmp_path, "dqn-0")
    assert command("report", run, "--no-eval") == 0
    assert not (run / "results").exists()
    assert "written to" in capsys.readouterr().out
    assert "No run has a result" in (run / "report" / "index.html").read_text()


def test_content_of_runs_is_escaped(cartpoles, tmp_path):
    (run,) = copies(cartpoles, tmp_path, "dqn-0")
    with editing(run / "run.json") as about:
        about["command"] = "<script>alert(1)</script>"
    text = write_report([run], tmp_path / "out", evaluate_missing=False).read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_runs_evaluated_under_different_protocols_are_refused_and_named(cartpoles, tmp_path):
    one, two = copies(cartpoles, tmp_path, "iqn-0", "dqn-0")
    with editing(two / "run.json") as about:
        about["protocol"] = {**about["protocol"], "epsilon": 0.05}
        del about["protocol"]["hash"]
    with pytest.raises(QuantailError, match=r"iqn-0 was evaluated under own .* and .*dqn-0 under own"):
        write_report([one, two], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_given_twice_is_refused(cartpoles, tmp_path):
    with pytest.raises(QuantailError, match="two runs with seed 0"):
        write_report([cartpoles / "iqn-0", cartpoles / "iqn-0"], tmp_path / "out")


def test_a_custom_environment_gets_its_curves_and_a_note_on_what_is_not_shown(tmp_path):
    settings = {k: v for k, v in QUICK["CartPole-v1"].items() if k != "stack"}
    quantail.train(Lottery, out=tmp_path / "run", steps=200, **settings)
    said = []
    page = write_report([tmp_path / "run"], say=said.append)
    assert any("pass it again as env" in sentence for sentence in said)
    assert page.parent == tmp_path / "run" / "report"
    assert "not shown" in page.read_text()
    assert any(path.name.startswith("learning-") for path in page.parent.iterdir())


def test_an_ale_run_is_shown_with_its_frame_and_its_human_normalised_score(breakout, tmp_path):
    run = shutil.copytree(breakout, tmp_path / "run")
    assert command("eval", run, "--episodes", "2") == 0
    text = write_report([run], tmp_path / "out").read_text()
    assert "human-normalised, over games" in text
    assert "one seed, so there is no interval" in text
    assert "up to 30 no-op frames" in text


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize("width", [390, 1200])
def test_in_a_real_browser_every_figure_is_shown_and_nothing_overflows(report, tmp_path, width):
    page = tmp_path / "page.html"
    probe = (
        "<script>onload = () => document.title = [document.documentElement.scrollWidth, innerWidth,"
        " [...document.images].filter(one => one.naturalWidth).length, document.images.length]</script>"
    )
    page.write_text(report[0].read_text() + probe)
    words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    words += [f"--user-data-dir={tmp_path}/browser", f"--window-size={width},800", "--dump-dom"]
    shown = subprocess.run(
        [*words, Path(page).as_uri()], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    scroll, inner, drawn, images = map(int, re.search("<title>([^<]*)</title>", shown)[1].split(","))
    assert scroll <= inner
    assert drawn == images > 3


def test_the_score_is_that_of_the_run_s_own_risk_measure(cartpoles, tmp_path):
    (run,) = copies(cartpoles, tmp_path, "iqn-0")
    for words in (("--episodes", 3), ("--episodes", 2, "--risk", "cvar:0.1")):
        assert command("eval", run, *words) == 0
    page = write_report([run], tmp_path / "out")
    (row,) = rows(page.parent / "scores.csv")
    assert (row["agent"], row["episodes"]) == ("iqn", "3")


def test_results_under_several_protocols_are_refused_before_anything_is_written(
    cartpoles, tmp_path, capsys
):
    (run,) = copies(cartpoles, tmp_path, "iqn-0")
    assert command("eval", run, "--episodes", 2) == 0
    assert command("eval", run, "--episodes", 2, "--epsilon", "0.5") == 0
    assert command("report", run, "--out", tmp_path / "out") == 2
    assert "choose one with --protocol" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert command("report", run, "--out", tmp_path / "out", "--protocol", "own with epsilon 0.5") == 0
    (row,) = rows(tmp_path / "out" / "scores.csv")
    assert row["protocol"].startswith("own with epsilon 0.5 v1")


@pytest.mark.parametrize("table", ["evaluations", "metrics"])
def test_a_damaged_table_is_named_before_anything_is_written(table, cartpoles, tmp_path, capsys):
    (run,) = copies(cartpoles, tmp_path, "iqn-0")
    (run / f"{table}.csv").write_text("steps,policy,max\n1,agent,2\n")
    assert command("report", run) == 2
    assert f"{table}.csv is damaged" in capsys.readouterr().err
    assert not (run / "report").exists()
    assert not (run / "results").exists()


def evaluated(run, *words):
    assert command("eval", run, "--episodes", 2, *words) == 0


def test_an_unknown_protocol_is_refused_before_anything_is_played(cartpoles, tmp_path, capsys):
    (run,) = copies(cartpoles, tmp_path, "iqn-0")
    for words in (("--protocol", "nope"), ("--starts", "abc")):
        assert command("report", run, *words) == 2
        assert "iqn-0 has no result" in capsys.readouterr().err
    assert not (run / "results").exists()
    evaluated(run)
    assert command("report", run, "--protocol", "nope") == 2
    assert "no result under protocol nope: it has own." in capsys.readouterr().err
    assert not (run / "report").exists()


def test_a_run_evaluated_only_under_another_risk_is_evaluated_under_its_own(cartpoles, tmp_path, capsys):
    (run,) = copies(cartpoles, tmp_path, "iqn-0")
    evaluated(run, "--risk", "cvar:0.1")
    assert command("report", run) == 0
    assert "has no result with neutral yet" in capsys.readouterr().out
    (row,) = rows(run / "report" / "scores.csv")
    assert (row["agent"], row["episodes"]) == ("iqn", "30")


def test_results_from_two_recordings_are_selected_by_starts(cartpoles, tmp_path, capsys):
    (run,) = copies(cartpoles, tmp_path, "iqn-0")
    for checksum in ("abc", "def"):
        protocol = Protocol("human-starts", episodes=2, starts=f"recording {checksum} by a person")
        played = Evaluation(np.ones(2), np.ones(2, int), "CartPole-v1", Neutral(), protocol, 1)
        save_result(run, quantail.load(run), played)
    assert command("report", run, "--no-eval") == 2
    assert "from recording def by a person: choose one with --starts." in capsys.readouterr().err
    assert command("report", run, "--starts", "def") == 0
    (row,) = rows(run / "report" / "scores.csv")
    assert row["starts"] == "recording def by a person"


def test_the_time_covers_the_steps_up_to_the_last_checkpoint(cartpoles, tmp_path):
    (run,) = copies(cartpoles, tmp_path, "iqn-0")
    (run / "checkpoints" / "last").write_text("000000150\n")
    (group,) = group_runs([read_history(run)])
    report = Report(tmp_path)
    sections.training_time(report, [group])
    ((name, _, steps, rate),) = report.sections[0].tables[0].rows
    assert (name, steps) == ("iqn-0", "150")
    assert rate == f"{150 / sum(group.runs[0].seconds.values()):,.0f}"


def test_runs_with_equal_folder_names_are_shown_separately(cartpoles, tmp_path):
    runs = [
        shutil.copytree(cartpoles / name, tmp_path / name / "run") for name in ("iqn-0", "dqn-0")
    ] + copies(cartpoles, tmp_path / "more", "iqn-1")
    report = Report(tmp_path)
    sections.training_time(report, group_runs([read_history(run) for run in runs]))
    names = [row[0] for row in report.sections[0].tables[0].rows]
    assert sorted(names) == ["dqn-0/run", "iqn-0/run", "iqn-1"]


def test_an_ale_game_without_a_human_score_is_noted_in_the_aggregates(breakout, tmp_path):
    runs = [shutil.copytree(breakout, tmp_path / name) for name in ("breakout", "carnival")]
    with editing(runs[1] / "run.json") as about:
        about["env"] = "ALE/Carnival-v5"
    for run in runs:
        protocol = Protocol("own", episodes=2)
        played = Evaluation(np.ones(2), np.ones(2, int), "ALE", Neutral(), protocol, 1)
        save_result(run, quantail.load(run), played)
    text = write_report(runs, tmp_path / "out").read_text()
    assert "1 of 2 games are in the aggregates" in text
    assert "human score for carnival" in text
    text = write_report(runs[1:], tmp_path / "one").read_text()
    assert "0 of 1 games are in the aggregates" in text


def test_a_second_report_removes_the_files_of_the_first_and_nothing_else(cartpoles, tmp_path):
    one, two = copies(cartpoles, tmp_path, "iqn-0", "dqn-0")
    out = tmp_path / "out"
    write_report([one, two], out)
    (out / "predicted-mine.png").write_text("a file of the user")
    assert list(out.glob("predicted-2-*"))
    page = write_report([one], out)
    assert not list(out.glob("predicted-2-*"))
    assert {path.name for path in out.iterdir()} == {
        "index.html", "predicted-mine.png", *shown_files(page)
    }  # fmt: skip


def test_a_report_without_a_display_prints_no_warnings(cartpoles, tmp_path):
    (run,) = copies(cartpoles, tmp_path, "dqn-0")
    gone = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "XDG_RUNTIME_DIR")
    env = {name: value for name, value in os.environ.items() if name not in gone}
    answer = quantail_command("report", run, "--no-eval", env=env)
    assert (answer.returncode, answer.stderr) == (0, "")
