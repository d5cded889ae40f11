"""Quantail is a good guest: used from Python, it changes nothing of the process that is not its own."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import quantail
from quantail.networks.heads import implicit
from quantail.recipes import PRESETS, compose
from quantail.training.process import num_threads, process_settings
from tests.helpers.runs import QUICK, Listening, flags, same_learning
from tests.helpers.runs import quantail as run_command

CALLS = (
    "import",
    "train",
    "train with threads and tf32",
    "train with torch's threads",
    "a run that raises",
    "load",
    "act",
    "predict",
    "evaluate",
    "resume",
)
CARTPOLE = QUICK["CartPole-v1"] | {"steps": 100}


def in_a_process(*words):
    """Run Python with these words and return the JSON that it prints in its last line."""
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def guest(tmp_path_factory):
    return in_a_process("-m", "tests.helpers.process_state", tmp_path_factory.mktemp("guest"))


@pytest.mark.parametrize("call", CALLS)
def test_a_call_from_python_leaves_the_state_of_the_process_as_it_was(call, guest):
    assert guest["changes"].keys() == set(CALLS)
    assert guest["changes"][call] == []


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("default", [1, "highest"]),  # of preset small
        ("chosen", [2, "high"]),
        ("resumed", [2, "high"]),
        ("torch", [3, "highest"]),  # those of the caller
        ("fails", [2, "highest"]),
    ],
)
def test_the_settings_of_a_run_are_in_force_while_it_runs(run, expected, guest):
    assert guest["in_force"][run] == expected


def test_a_precision_that_the_caller_set_for_one_backend_alone_is_restored():
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    try:
        matmul.fp32_precision = "tf32"
        with process_settings(torch.get_num_threads(), "float32"):
            assert matmul.fp32_precision == "ieee"
        assert matmul.fp32_precision == "tf32"
    finally:
        matmul.fp32_precision = before
    assert torch.get_float32_matmul_precision() == "highest"


FROM_THE_COMMAND_LINE = """
import json, sys
import gymnasium as gym, torch
from quantail.cli.main import run
from tests.helpers.process_state import keeps_large_blocks

noted = []

class Noting(gym.Wrapper):
    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))

    def reset(self, **options):
        noted.append([torch.get_num_threads(), keeps_large_blocks()])
        return super().reset(**options)

gym.register("tests/Noting-v0", entry_point=Noting)
torch.set_num_threads(int(sys.argv[1]))
before = keeps_large_blocks()
assert run(sys.argv[2:]) == 0
print(json.dumps([before, noted[-1]]))
"""


def test_from_the_command_line_the_fast_settings_are_in_force(tmp_path):
    short = {"steps": 100, "learning_starts": 60, "evaluation_every": 100, "evaluation_episodes": 1}
    few = [*flags(short), "--quiet"]
    train = ("train", "tests/Noting-v0", "--out", tmp_path / "run", *few)
    assert in_a_process("-c", FROM_THE_COMMAND_LINE, 3, *train) == [False, [1, True]]
    many = ("train", "tests/Noting-v0", "--out", tmp_path / "many", "--threads", 0, *few)
    assert in_a_process("-c", FROM_THE_COMMAND_LINE, 3, *many) == [False, [3, True]]
    resume = ("resume", tmp_path / "many", "--steps", 120, "--quiet")
    assert in_a_process("-c", FROM_THE_COMMAND_LINE, 2, *resume) == [False, [3, True]]


def test_presets_for_small_networks_use_one_thread_and_the_others_what_torch_has():
    threads = {name: compose(name, {}).run.threads for name in PRESETS}
    wide = dict.fromkeys(("atari-paper", "atari-fast", "atari-sticky"), 0)
    assert threads == dict.fromkeys(PRESETS, 1) | wide


def test_resume_warns_if_another_number_of_threads_is_in_force(tmp_path):
    run, here = tmp_path / "run", torch.get_num_threads()
    with num_threads(2):
        quantail.train("CartPole-v1", out=run, **CARTPOLE | {"threads": 0})
    assert json.loads((run / "run.json").read_text())["threads"] == 2

    def resumed(torch_has, steps, **options):
        heard = Listening()
        with num_threads(torch_has):
            quantail.resume(run, steps=steps, callbacks=[heard], **options)
        return [one for one in heard.warnings if "last bits" in one]

    (warning,) = resumed(1, 120)
    assert "was trained with 2 threads and continues with 1 thread" in warning
    assert "--threads 2 (threads=2 in Python) avoids" in warning
    assert json.loads((run / "run.json").read_text())["threads"] == 1
    assert resumed(1, 140) == []
    (warning,) = resumed(1, 160, threads=2)
    assert "was trained with 1 thread and continues with 2 threads" in warning
    assert resumed(1, 170, threads=2) == []
    with pytest.raises(quantail.QuantailError, match="threads"):
        quantail.resume(run, steps=200, threads=-1)
    done = run_command("resume", run, "--steps", 180)
    assert done.returncode == 0
    assert "cpu with 2 threads" in done.stderr
    assert "last bits" not in done.stderr
    done = run_command("resume", run, "--steps", 190, "--threads", 1)
    assert "cpu with 1 thread" in done.stderr
    assert "was trained with 2 threads and continues with 1 thread" in done.stderr
    assert torch.get_num_threads() == here


@pytest.mark.parametrize("agent", ["iqn", "rainbow"])
def test_networks_are_float32_whatever_the_default_of_torch_is(agent, tmp_path):
    settings = CARTPOLE | {"agent": agent, "threads": 1}
    quantail.train("CartPole-v1", out=tmp_path / "single", **settings)
    torch.set_default_dtype(torch.float64)
    try:
        quantail.train("CartPole-v1", out=tmp_path / "double", **settings)
        assert torch.get_default_dtype() == torch.float64
        loaded = quantail.load(tmp_path / "double", risk="cvar:0.25")
        loaded.returns(np.zeros((2, 4), np.float32)).value("cvar:0.1")
        assert len(quantail.evaluate(loaded, episodes=2).returns) == 2
    finally:
        torch.set_default_dtype(torch.float32)
    assert {parameter.dtype for parameter in loaded.network.parameters()} == {torch.float32}
    assert same_learning(tmp_path / "single", tmp_path / "double")


def test_resume_keeps_to_the_compute_path_of_the_run_and_warns_if_it_cannot(tmp_path, monkeypatch):
    with_kernels, without = tmp_path / "numba", tmp_path / "torch"
    quantail.train("CartPole-v1", out=with_kernels, **CARTPOLE | {"head_size": 64})
    quantail.train("CartPole-v1", out=without, **CARTPOLE | {"head_size": 64, "kernels": "torch"})

    def path_of(run):
        return json.loads((run / "run.json").read_text())["kernels"]

    def resumed(run, steps):
        heard = Listening()
        quantail.resume(run, steps=steps, callbacks=[heard])
        return [one for one in heard.warnings if "last bits" in one]

    assert (path_of(with_kernels), path_of(without)) == ("numba", "torch")
    assert resumed(with_kernels, 120) == resumed(without, 120) == []
    assert (path_of(with_kernels), path_of(without)) == ("numba", "torch")
    monkeypatch.setattr(implicit, "load_kernels", lambda: None)  # as without numba
    (warning,) = resumed(with_kernels, 140)
    assert "was trained with compiled kernels and continues with torch alone" in warning
    assert path_of(with_kernels) == "torch"
    monkeypatch.undo()
    assert resumed(with_kernels, 160) == []  # as it went on, though there are kernels again
    assert path_of(with_kernels) == "torch"
