"""One small study, run once without interruption, as a reference for the other tests."""

from pathlib import Path

import pytest

from quantail.experiments import read_study, run_study
from tests.helpers.studies import study_file

USER_MODULES = Path(__file__).parent.parent / "user_modules"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Return the file of a study of two runs."""
    text = """
        games = ["CartPole-v1"]
        ---
        [grid]
        kappa = [0.5, 1.0]
    """
    return study_file(tmp_path_factory.mktemp("file"), text)


@pytest.fixture(scope="session")
def unbroken(tiny, tmp_path_factory):
    """Return the folder of the same study, run to its end by the local engine."""
    out = tmp_path_factory.mktemp("studies") / "unbroken"
    outcome = run_study(read_study(tiny), out)
    assert (outcome.done, outcome.total, outcome.failed) == (2, 2, {})
    return out


@pytest.fixture
def own_modules(monkeypatch):
    """Let this process and its subprocesses import the modules in `tests/user_modules`."""
    monkeypatch.syspath_prepend(USER_MODULES)
    monkeypatch.setenv("PYTHONPATH", str(USER_MODULES))
