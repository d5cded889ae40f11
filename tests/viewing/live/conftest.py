"""A trained bandit, and a real server that shows it."""

import pytest

import quantail
from tests.helpers.serving import serving


@pytest.fixture(scope="session")
def bandit(tmp_path_factory):
    """IQN on an MDP where the mean prefers the risky action and CVaR(0.05) the safe one."""
    path = tmp_path_factory.mktemp("live") / "bandit"
    quick = {"steps": 4000, "learning_starts": 200, "evaluation_every": 4000, "threads": 1}
    quantail.train("Quantail/RiskyBandit-v0", out=path, **quick)
    return path


@pytest.fixture(scope="module")
def served(bandit):
    with serving(bandit) as running:
        yield running
