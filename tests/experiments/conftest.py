"""One small study, run once without any trouble: what all others are compared with."""

import textwrap
from pathlib import Path

import pytest

from quantail.experiments import read_study, run_study

HERE = Path(__file__).parent
TINY = """
steps = 600
[settings]
learn_start = 60
epsilon_steps = 100
replay_capacity = 150
target_every = 40
evaluation_every = 100
evaluation_episodes = 2
log_every = 20
checkpoint_every = 50
batch_size = 8
head_size = 16
mlp_sizes = [16]
"""


def study_file(folder, text, name="tiny"):
    """A study of tiny runs; `text` goes before and after its settings, parted by a line of dashes."""
    before, _, after = textwrap.dedent(text).partition("---")
    path = folder / f"{name}.toml"
    path.write_text(before + TINY + after)
    return path


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The file of a study of two runs."""
    text = """
        games = ["CartPole-v1"]
        ---
        [grid]
        kappa = [0.5, 1.0]
    """
    return study_file(tmp_path_factory.mktemp("file"), text)


@pytest.fixture(scope="session")
def unbroken(tiny, tmp_path_factory):
    """The same study, run to its end by the local engine."""
    out = tmp_path_factory.mktemp("studies") / "unbroken"
    outcome = run_study(read_study(tiny), out)
    assert (outcome.done, outcome.total, outcome.failed) == (2, 2, {})
    return out


@pytest.fixture
def own_modules(monkeypatch):
    """Let runs in other processes import what lies beside these tests."""
    monkeypatch.setenv("PYTHONPATH", str(HERE))
