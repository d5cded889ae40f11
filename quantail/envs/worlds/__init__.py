"""Small worlds whose return laws are known exactly."""

from quantail.envs.worlds.exact import ExactLaw, Solution, solve
from quantail.envs.worlds.games import WORLDS
from quantail.envs.worlds.tabular import Outcome, World

__all__ = ["WORLDS", "ExactLaw", "Outcome", "Solution", "World", "solve"]
