"""The tool tools/bits.py, which compares what two versions learn."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from quantail.recipes import AGENTS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def bits():
    spec = importlib.util.spec_from_file_location("bits", ROOT / "tools" / "bits.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["bits"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["bits"]


def test_every_agent_is_compared_with_the_flags_that_are_for_it(bits):
    assert [run.agent for run in bits.RUNS if run.env == "CartPole-v1"] == list(AGENTS)
    assert set(bits.FLAGS) <= set(AGENTS)
    assert bits.LOCAL_EPSILON == ["rainbow", "rainbow-iqn"]
    assert "CartPole-v1-iqn-risk-cvar0.25" in [run.name for run in bits.RUNS]


@pytest.fixture
def twins(cartpoles, tmp_path):
    shutil.copytree(cartpoles / "iqn-0", tmp_path / "a")
    shutil.copytree(cartpoles / "iqn-0", tmp_path / "b")
    return tmp_path / "a", tmp_path / "b"


def last(run):
    return run / "checkpoints" / (run / "checkpoints" / "last").read_text().strip()


def test_equal_runs_have_no_differences_and_the_same_fingerprint(bits, twins):
    a, b = twins
    (b / "timing.csv").write_text("steps\n")  # timing is not compared
    assert list(bits.differences(a, b)) == []
    assert bits.fingerprint(a) == bits.fingerprint(b)


def test_runs_of_two_seeds_differ_from_the_first_episode_on(bits, cartpoles):
    found = "\n".join(bits.differences(cartpoles / "iqn-0", cartpoles / "iqn-1"))
    assert "metrics.csv differs from step" in found
    assert "episodes.csv differs from step" in found
    assert "tensor agent/" in found
    assert "tensor learner/optimizer." in found
    assert bits.fingerprint(cartpoles / "iqn-0") != bits.fingerprint(cartpoles / "iqn-1")


@pytest.mark.parametrize("file", ["agent", "learner"])
def test_one_changed_bit_of_a_weight_or_of_the_optimizer_is_found(bits, twins, file):
    a, b = twins
    path = last(b) / f"{file}.safetensors"
    arrays = load_file(path)
    name = next(name for name in arrays if name.endswith(("weight", "weight.exp_avg")))
    arrays[name].view(np.uint32).flat[0] ^= 1
    save_file(arrays, path)
    (only,) = bits.differences(a, b)
    assert only.startswith(f"tensor {file}/{name} differs")
    assert bits.fingerprint(a) != bits.fingerprint(b)


def test_one_changed_cell_of_a_table_is_found_with_its_step(bits, twins):
    a, b = twins
    table = b / "metrics.csv"
    lines = table.read_text().splitlines()
    cells = lines[4].split(",")
    cells[5] = "0.125"
    table.write_text("\n".join([*lines[:4], ",".join(cells), *lines[5:]]) + "\n")
    (only,) = bits.differences(a, b)
    assert only.startswith(f"metrics.csv differs from step {cells[0]} on: loss")


def test_renamed_tensors_and_columns_are_equal_under_their_new_names(bits, twins, monkeypatch):
    a, b = twins
    path = last(b) / "agent.safetensors"
    arrays = {name.replace("torso.", "psi.", 1): array for name, array in load_file(path).items()}
    save_file(arrays, path)
    text = (b / "metrics.csv").read_text()
    (b / "metrics.csv").write_text(text.replace("recent_return", "mean_return", 1))
    assert list(bits.differences(a, b))
    before = bits.fingerprint(a)
    monkeypatch.setitem(bits.RENAMED_TENSORS, "torso.", "psi.")
    monkeypatch.setitem(bits.RENAMED_COLUMNS, "recent_return", "mean_return")
    assert list(bits.differences(a, b)) == []
    assert bits.fingerprint(b) == before  # names are not part of the fingerprint


def test_a_flag_is_passed_by_the_name_that_the_version_knows(bits, monkeypatch):
    monkeypatch.setitem(bits.RENAMED_FLAGS, "learn-start", "learning-starts")
    old, new = "  --learn-start N  before", "  --learning-starts N  before"
    for word in ("--learn-start=5", "--learning-starts=5"):
        assert bits._as_known(word, old) == "--learn-start=5"
        assert bits._as_known(word, new) == "--learning-starts=5"
    assert bits._as_known("--seed=5", old) == "--seed=5"
    assert bits._as_known("cvar:0.25", old) == "cvar:0.25"


@pytest.fixture
def repository(bits, tmp_path, monkeypatch):
    """An empty repository in which `bits` works, and a function that commits a file."""
    monkeypatch.setattr(bits, "ROOT", tmp_path)
    monkeypatch.setattr(bits, "CACHE", tmp_path / "runs" / ".bits")

    def git(*words):
        who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    def commit(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        git("add", path)
        git("commit", "-m", path)

    git("init", "-q")
    return commit


@pytest.mark.parametrize(
    ("path", "text", "sentence"),
    [
        ("README.md", "text", "it has no folder quantail."),
        ("quantail/__main__.py", "import a_package_that_is_missing", "No module named"),
        ("quantail/__main__.py", "print('usage: quantail')", "lists no --agent"),
    ],
)
def test_a_commit_that_cannot_train_is_answered_with_one_sentence(
    bits, repository, path, text, sentence
):
    repository(path, text)
    with pytest.raises(bits.BitsError) as found:
        bits.compare("HEAD", bits.RUNS[:1], 1)
    assert "cannot train" in str(found.value)
    assert sentence in str(found.value)
    assert "\n" not in str(found.value)
    with pytest.raises(bits.BitsError, match="'no-such' is not a commit"):
        bits.checkout("no-such")
