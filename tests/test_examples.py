"""The examples do what they say."""

import runpy
from pathlib import Path

import numpy as np

import quantail
import quantail.observations
import quantail.recipes
import quantail.risk
from quantail.envs.worlds import WORLDS, solve

EXAMPLES = Path(__file__).parent.parent / "examples"


class Exact:
    """An agent that knows the chain's exact laws."""

    def __init__(self):
        self.world = WORLDS["Quantail/Chain-v0"]()
        self.solution = solve(self.world)
        self.settings = quantail.recipes.compose("worlds", {})
        self.actions = quantail.observations.ActionSpec(2)
        self.env = "Quantail/Chain-v0"

    def _laws(self, observation):
        state = self.world.states[int(np.argmax(observation))]
        return [self.solution.laws[state, action] for action in range(2)]

    def act(self, observation, risk):
        measure = quantail.risk.parse_risk(risk)
        return int(np.argmax([law.value(measure) for law in self._laws(observation)]))

    def returns(self, observation):
        laws = self._laws(observation)

        class Z:
            @staticmethod
            def quantile(tau):
                return np.array([float(law.quantile(np.array([tau]))[0]) for law in laws])

        return Z()


def test_the_adaptive_attitude_keeps_its_floor_and_earns_more_than_care_alone():
    example = runpy.run_path(str(EXAMPLES / "adaptive_risk.py"))
    agent = Exact()
    adaptive = example["play"](agent, example["neutral_unless_in_danger"](agent, 1.0), 300)
    careful = example["play"](agent, lambda observation, *_: agent.act(observation, "cvar:0.05"), 20)
    bold = example["play"](agent, lambda observation, *_: agent.act(observation, "neutral"), 300)
    assert adaptive.min() >= 1.0
    assert bold.min() < 0
    assert adaptive.mean() > careful.mean() + 0.3


def test_the_adaptive_example_prints_a_row_for_each_attitude(tmp_path, capsys):
    settings = {"steps": 1500, "evaluation_every": 1500, "learn_start": 200, "threads": 1}
    quantail.train("Quantail/Chain-v0", agent="qr-dqn", out=tmp_path / "chain", **settings)
    example = runpy.run_path(str(EXAMPLES / "adaptive_risk.py"))
    example["main"]([str(tmp_path / "chain"), "--episodes", "20", "--floor", "0.5"])
    said = capsys.readouterr().out
    assert "below 0.5" in said
    assert [line.split()[0] for line in said.splitlines()[1:]] == ["neutral", "cvar:0.05", "adaptive"]
