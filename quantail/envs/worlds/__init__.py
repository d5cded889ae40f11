"""Small tabular environments ("worlds") whose return distributions are known exactly."""

from quantail.envs.worlds.exact import ExactDistribution, Solution, solve
from quantail.envs.worlds.games import WORLDS
from quantail.envs.worlds.tabular import Outcome, World

__all__ = ["WORLDS", "ExactDistribution", "Outcome", "Solution", "World", "solve"]
