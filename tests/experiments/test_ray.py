import os
import signal
import sys
import time
from pathlib import Path

import pytest

from quantail.errors import QuantailError
from quantail.experiments import read_study, run_study
from quantail.experiments.engines import make_engine
from quantail.experiments.folder import StudyFolder
from quantail.experiments.runner import View
from tests.helpers.crowded import crowded, unmarked
from tests.helpers.runs import kill_when, quantail
from tests.helpers.studies import study_file


def test_without_ray_the_error_names_the_extra(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(QuantailError, match=r"pip install 'quantail\[ray\]'"):
        run_study(read_study(tiny), tmp_path / "out", engine="ray")


ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster():
    """A real cluster: a head that runs nothing, and two workers that run one task each."""
    from ray.cluster_utils import Cluster

    quick = {"health_check_period_ms": 500, "health_check_failure_threshold": 3}
    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": quick}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


class KillsAWorker(View):
    """Kill the worker node of the first run that has saved, once."""

    def __init__(self, out):
        self.folder = StudyFolder(out)
        self.killed = ""
        self.steps = 0

    def on_tick(self):
        for name in () if self.killed else self.folder.jobs:
            run = self.folder.run(name)
            if list(run.checkpoints.glob("0*")) and not self.folder.is_done(name):
                worker = int((run.path / ".lock").read_text())
                raylet = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
                assert b"raylet" in Path(f"/proc/{raylet}/cmdline").read_bytes()
                for process in (raylet, worker):  # like the loss of a machine
                    os.kill(process, signal.SIGKILL)
                self.killed, self.steps = name, self.folder.state(name).steps
                return


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds the worker's node in /proc")
def test_a_study_survives_the_death_of_a_worker_with_the_results_of_the_local_engine(
    tiny, unbroken, tmp_path, cluster
):
    out = tmp_path / "ray"
    view = KillsAWorker(out)
    outcome = run_study(read_study(tiny), out, engine="ray", address=cluster.address, view=view)
    assert view.killed
    assert (outcome.done, outcome.total, outcome.failed) == (2, 2, {})
    log = StudyFolder(out).log(view.killed).read_text()
    assert log.count("budget") == 2  # it was started, and resumed by another worker
    assert (out / "results.csv").read_bytes() == (unbroken / "results.csv").read_bytes()


def test_a_run_that_needs_more_than_the_cluster_has_is_refused(cluster):
    with pytest.raises(QuantailError, match="a run needs 64 CPU, but the Ray cluster"):
        make_engine("ray", threads=64, address=cluster.address)
    with pytest.raises(QuantailError, match=r"a run needs 1 CPU and 0\.5 GPU"):
        make_engine("ray", threads=1, gpus=0.5, address=cluster.address)
    assert not ray.is_initialized()


def test_a_stopped_study_on_ray_saves_and_says_how_to_continue(tiny, tmp_path, cluster):
    out = tmp_path / "stopped"
    words = ("study", "grid", tiny, "--out", out, "--engine", "ray", "--address", cluster.address)
    status, said = kill_when(
        lambda: list(Path(out).glob("runs/*/checkpoints/0*")), *words, how=signal.SIGTERM
    )
    assert status == 130
    assert f"quantail study resume {out}" in said.replace("\n", "")
    folder = StudyFolder(out)
    assert not any(folder.failure(name) for name in folder.jobs)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_missing_cluster_is_reported_quickly(tiny, tmp_path, address):
    begin = time.monotonic()
    with pytest.raises(QuantailError, match=f"no Ray cluster answers at {address}: start one"):
        run_study(read_study(tiny), tmp_path / "out", engine="ray", address=address)
    assert time.monotonic() - begin < 20


def test_workers_get_the_trusted_modules_and_search_the_working_folder_last(tmp_path, cluster):
    folder = crowded(tmp_path / "here")
    file = study_file(folder, 'games = ["own_env:Own-v0"]\n---\n[grid]\nkappa = [1.0]')
    words = ("study", "grid", file, "--out", "out", "--steps", 100, "--quiet", "--engine", "ray")
    ended = quantail(*words, "--address", cluster.address, "--trust", "own_env", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert unmarked(folder) is True
