import pytest

from quantail.experiments import changed, read_study
from quantail.experiments.estimate import LONG, Cost, estimate, in_words
from quantail.experiments.folder import StudyFolder
from quantail.experiments.job import run_job
from tests.helpers.studies import study_file


def open_study(path, study):
    folder = StudyFolder(path)
    folder.open(study)
    return folder


def test_frames_and_runs_are_counted_and_the_rate_is_measured(tiny, tmp_path):
    folder = open_study(tmp_path / "out", changed(read_study(tiny), seeds=3))
    found = estimate(folder, list(folder.jobs.values()), at_once=2)
    assert (found.runs, found.frames) == (6, 6 * 400)
    assert 0.1 < found.seconds < 600
    assert found.bytes > 2 * 50e6
    assert found.source == "from a short measurement"


def test_the_time_is_divided_among_parallel_runs(tiny, tmp_path, monkeypatch):
    cost = Cost(step=0.01, evaluation_step=0.001, bytes=1000, measured=True)
    monkeypatch.setattr("quantail.experiments.estimate._measure_cost", lambda job, seconds: cost)
    folder = open_study(tmp_path / "out", changed(read_study(tiny), seeds=3))
    jobs = list(folder.jobs.values())
    assert estimate(folder, jobs, at_once=1).seconds == pytest.approx(6 * 400 * 0.01)
    assert estimate(folder, jobs, at_once=2).seconds == pytest.approx(3 * 400 * 0.01)
    assert estimate(folder, jobs, at_once=100).seconds == pytest.approx(400 * 0.01)


def test_for_a_missing_device_the_cpu_is_measured_and_the_estimate_says_so(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    study = changed(read_study(tiny), settings={"device": "cuda"})
    folder = open_study(tmp_path / "out", study)
    found = estimate(folder, list(folder.jobs.values()), at_once=1)
    said = "from a short measurement on the CPU, because this machine has no cuda"
    assert said in found.lines()["time"]
    assert found.seconds > 0


def test_timings_of_existing_runs_replace_the_measurement(tiny, tmp_path):
    out = tmp_path / "out"
    for name in open_study(out, read_study(tiny)).jobs:
        assert run_job(out, name) == "done"
    folder = open_study(out, changed(read_study(tiny), seeds=2))
    left = [job for job in folder.jobs.values() if job.seed == 1]
    found = estimate(folder, left, at_once=1)
    assert found.source == "from existing runs"
    seconds = sum(
        float((out / "runs" / job.name.replace("-s1", "-s0") / "timing.csv").read_text().split(",")[-3])
        for job in left
    )
    assert found.seconds == pytest.approx(seconds)


def test_the_papers_study_is_long(tmp_path):
    study = changed(read_study("risk"), games=["Breakout"], measures=["neutral"])
    folder = open_study(tmp_path / "out", study)
    found = estimate(folder, list(folder.jobs.values()), at_once=1)
    assert found.frames == 200_000_000
    assert found.long
    assert found.seconds > 20 * LONG
    assert not found.open_ended  # evaluations have a budget of frames, so their time is known


def test_time_in_words():
    assert [in_words(s) for s in (0, 59, 300, 7200, 1e6)] == [
        "1 second",
        "59 seconds",
        "5.0 minutes",
        "2.0 hours",
        "12 days",
    ]


def test_the_estimate_depends_on_the_settings_of_an_axis(tmp_path):
    text = """
        games = ["CartPole-v1"]
        ---
        [grid]
        batch_size = [8, 4096]
    """
    folder = open_study(tmp_path / "out", read_study(study_file(tmp_path, text)))
    small, large = folder.jobs.values()
    assert estimate(folder, [large], 1).seconds > 2 * estimate(folder, [small], 1).seconds
