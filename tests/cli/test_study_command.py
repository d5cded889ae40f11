import sys

import pytest

from quantail.cli import study_run
from quantail.experiments import read_study, shipped
from quantail.experiments.engines import Event
from quantail.experiments.folder import StudyFolder
from quantail.experiments.progress import LiveView, PlainView
from quantail.experiments.runner import StudyOutcome
from quantail.runs.tables import TIMING, CsvTable
from tests.helpers.fakes import fake_results, rising
from tests.helpers.runs import command
from tests.helpers.studies import study_file


def test_study_without_arguments_lists_studies_and_subcommands(capsys):
    assert command("study") == 0
    said = capsys.readouterr().out
    for word in (
        *shipped(),
        "grid",
        "status",
        "resume",
        "figures",
        "741",
        "quantail study samples --small",
    ):
        assert word in said, word


@pytest.mark.parametrize("name", [*shipped(), "grid", "status", "resume", "figures"])
def test_every_study_command_has_help(name, capsys):
    with pytest.raises(SystemExit) as end:
        command("study", name, "--help")
    assert end.value.code == 0
    assert f"usage: quantail study {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", [*shipped(), "grid"])
def test_options_for_an_axis_are_shown_only_if_the_study_has_it(name, capsys):
    with pytest.raises(SystemExit):
        command("study", name, "--help")
    said = capsys.readouterr().out
    assert ("--measures" in said) == (name in ("risk", "grid"))
    assert ("--agents" in said) == (name in ("atari57", "grid"))


def test_mistakes_are_refused_in_one_sentence(capsys, tmp_path):
    for words, said in (
        (("study", "sampels"), "not 'sampels'. Did you mean 'samples'?"),
        (("study", "status", tmp_path / "none"), "there is no study at"),
        (("study", "figures", tmp_path / "none"), "there is no study at"),
        (("study", "samples", "--small", "--seeds", "0"), "seeds takes a whole number of at least 1"),
        (("study", "samples", "--small", "--set", "batch_size"), "--set takes NAME=VALUE"),
        (("study", "samples", "--small", "--set", "batchsize=3"), "unknown setting 'batchsize'"),
        (("study", "samples", "--small", "--steps", "100"), "steps 100 end before learning begins"),
        (("study", "risk", "--agents", "dqn"), "--agents needs an axis agent"),
        (("study", "samples", "--set", "online_samples=7"), "online_samples is set by the axis"),
        (("study", "samples", "--set", "threads=0"), "a study's threads take 1 or more"),
        (("study", "risk", "--small", "--gpus", "-1"), "gpus takes a number above 0"),
    ):
        assert command(*words) == 2, words
        message = capsys.readouterr().err
        assert said in message
        assert message.count("\n") == 1


def test_figures_draws_a_partial_study_and_says_so(tmp_path, capsys):
    folder = fake_results(tmp_path / "study", read_study("risk", small=True), rising, share=0.5)
    assert command("study", "figures", folder.path) == 0
    said = capsys.readouterr().out
    assert "partial: 12 of 24 runs done" in said
    assert (folder.figures / "curves.png").exists()
    assert (folder.figures / "distortions.svg").exists()
    assert command("scores", folder.figures / "scores.csv") == 0


def write_timing(run):
    row = {"steps": 3000, "frames": 3000, "seconds": 10, "steps_per_second": 250.0}
    CsvTable(run.table("timing"), TIMING).add({**row, "updates_per_second": 60.0})


def test_status_shows_started_and_failed_runs(tmp_path, capsys):
    folder = StudyFolder(tmp_path / "study")
    folder.open(read_study("risk", small=True))
    started, failed, *_ = folder.jobs
    (folder.runs / started).mkdir()
    write_timing(folder.run(started))
    folder.note_failure(failed, "the machine was lost")
    assert command("study", "status", folder.path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "not running 0 of 24 runs done, 1 started, 22 not started, 1 failed" in said
    assert f"{started} started 3,000 (10%)" in said
    assert f"{failed} failed: the machine was lost" in said
    assert f"quantail study resume {folder.path}" in said.replace("\n", "")


def test_a_long_study_needs_a_confirmation_on_a_terminal_or_yes(tmp_path, monkeypatch, capsys):
    questions = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: questions.append(1) or "n")

    def only_confirms(study, out, *, confirm, **_):
        folder = StudyFolder(out)
        folder.open(study)
        engine = type("E", (), {"at_once": 1, "describe": lambda self: "nowhere"})()
        if not confirm(folder, engine, list(folder.jobs.values())):
            return None
        return StudyOutcome(folder, 0, 1, {}, "")

    monkeypatch.setattr(study_run, "run_study", only_confirms)
    monkeypatch.setattr(study_run, "show", lambda folder: None)
    file = study_file(tmp_path, 'games = ["CartPole-v1"]\n---\n[grid]\nkappa = [1.0]')
    words = ("study", "grid", file, "--steps", 200_000_000, "--out", tmp_path / "out")
    assert command(*words) == 1
    said = capsys.readouterr().err
    assert "200,000,000 frames" in said
    assert "not started" in said
    assert command(*words, "--yes") == 0
    assert len(questions) == 1

    def ctrl_d():
        raise EOFError

    monkeypatch.setattr("builtins.input", ctrl_d)
    assert command(*words) == 1
    assert "not started" in capsys.readouterr().err


def test_the_live_table_shows_rates_time_left_and_reasons(tmp_path):
    from rich.console import Console

    folder = StudyFolder(tmp_path / "study")
    folder.open(read_study("risk", small=True))
    one, two, *_ = jobs = list(folder.jobs)
    (folder.runs / one).mkdir()
    write_timing(folder.run(one))
    view = LiveView(Console(width=150))
    PlainView.on_start(view, folder, None, [folder.jobs[name] for name in jobs])
    view.on_event(Event(one, "started"))
    view.on_event(Event(two, "failed", "the machine was lost"))
    with view.console.capture() as captured:
        view.console.print(view.table())
    said = " ".join(captured.get().split())
    assert "0 of 24 done, 1 running, 22 waiting, 1 failed, 250 steps/s" in said
    assert f"{one} running 3,000 (10%) 250/s 1:48" in said
    assert f"{two} failed: the machine was lost" in said


def test_a_study_over_seeds_asks_for_its_package_before_the_runs(tmp_path, monkeypatch, capsys):
    grid = """
    games = ["CartPole-v1"]
    seeds = 2
    figure = "curves"
    ---
    [grid]
    agent = ["dqn"]
    """
    monkeypatch.setitem(sys.modules, "rliable.library", None)
    file, out = study_file(tmp_path, grid), tmp_path / "study"
    assert command("study", "grid", file, "--out", out) == 2
    said = capsys.readouterr().err
    assert "an interval over seeds needs rliable: pip install 'quantail[stats]'" in said
    assert not out.exists()
    monkeypatch.setattr(study_run, "run_study", lambda *words, **options: None)
    assert command("study", "grid", file, "--out", out, "--seeds", 1) == 1
    assert capsys.readouterr().err == "not started.\n"
