"""Fixtures shared by all tests."""

import os

# Some virtual machines report AMX but do not allow it, so a bfloat16 product would kill the process.
# oneDNN reads this variable once, so it must be set before torch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import pytest

import quantail
from tests.helpers.plugins import install, searching
from tests.helpers.runs import QUICK, quick


@pytest.fixture(scope="session")
def cartpoles(tmp_path_factory):
    """Train tiny runs: two seeds of IQN and one of DQN on CartPole."""
    folder = tmp_path_factory.mktemp("runs")
    for agent, seed in (("iqn", 0), ("iqn", 1), ("dqn", 0)):
        settings = quick(agent) | {"seed": seed}
        quantail.train("CartPole-v1", out=folder / f"{agent}-{seed}", steps=200, **settings)
    return folder


@pytest.fixture(scope="session")
def breakout(tmp_path_factory):
    """Train a tiny run of IQN on ALE Breakout."""
    path = tmp_path_factory.mktemp("ale") / "breakout"
    quantail.train("ALE/Breakout-v5", out=path, steps=200, **QUICK["ALE/Breakout-v5"])
    return path


@pytest.fixture(scope="session")
def plugin(tmp_path_factory):
    """Install the example plug-in, and return the environment of a process that has it."""
    return searching(install(tmp_path_factory.mktemp("plugin")))
