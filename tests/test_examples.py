"""The examples do what their documentation says."""

import runpy
from pathlib import Path

import numpy as np

import quantail
import quantail.recipes
import quantail.risk
import quantail.spaces
from quantail.envs.worlds import WORLDS, solve

EXAMPLES = Path(__file__).parent.parent / "examples"


class Exact:
    """An agent with the exact return distributions of the chain."""

    def __init__(self):
        self.world = WORLDS["Quantail/Chain-v0"]()
        self.solution = solve(self.world)
        self.config = quantail.recipes.compose("worlds", {})
        self.actions = quantail.spaces.ActionSpec(2)
        self.env = "Quantail/Chain-v0"

    def _distribution(self, observation):
        state = self.world.states[int(np.argmax(observation))]
        return [self.solution.distributions[state, action] for action in range(2)]

    def act(self, observation, risk):
        measure = quantail.risk.parse_risk(risk)
        return int(
            np.argmax(
                [float(measure.value(distribution)) for distribution in self._distribution(observation)]
            )
        )

    def returns(self, observation):
        distributions = self._distribution(observation)

        class Z:
            @staticmethod
            def quantile(tau):
                return np.array(
                    [float(distribution.quantile(np.array([tau]))[0]) for distribution in distributions]
                )

        return Z()


def test_the_adaptive_policy_keeps_its_floor_and_earns_more_than_a_cautious_one():
    example = runpy.run_path(str(EXAMPLES / "adaptive_risk.py"))
    agent = Exact()
    adaptive = example["play"](agent, example["neutral_unless_in_danger"](agent, 1.0), 300)
    cautious = example["play"](agent, lambda observation, *_: agent.act(observation, "cvar:0.05"), 20)
    neutral = example["play"](agent, lambda observation, *_: agent.act(observation, "neutral"), 300)
    assert adaptive.min() >= 1.0
    assert neutral.min() < 0
    assert adaptive.mean() > cautious.mean() + 0.3


def test_the_adaptive_example_prints_a_row_for_each_policy(tmp_path, capsys):
    settings = {"steps": 1500, "evaluation_every": 1500, "learning_starts": 200, "threads": 1}
    quantail.train("Quantail/Chain-v0", agent="qr-dqn", out=tmp_path / "chain", **settings)
    example = runpy.run_path(str(EXAMPLES / "adaptive_risk.py"))
    example["main"]([str(tmp_path / "chain"), "--episodes", "20", "--floor", "0.5"])
    said = capsys.readouterr().out
    assert "below 0.5" in said
    assert [line.split()[0] for line in said.splitlines()[1:]] == ["neutral", "cvar:0.05", "adaptive"]
