"""Small tabular environments ("worlds") whose return distributions are known exactly."""

from quantail.envs.worlds.exact import Solution, exact_distribution, solve
from quantail.envs.worlds.games import WORLDS
from quantail.envs.worlds.tabular import Outcome, World

__all__ = ["WORLDS", "Outcome", "Solution", "World", "exact_distribution", "solve"]
