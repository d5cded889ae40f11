"""Distributional and risk-sensitive reinforcement learning with implicit quantile networks."""

from quantail.acting.agent import Agent
from quantail.envs import make
from quantail.errors import QuantailError
from quantail.evaluation import Evaluation, evaluate
from quantail.risk import CPW, CVaR, Neutral, Norm, Pow, Wang
from quantail.training.train import load, resume, train

__version__ = "0.1.0"

__all__ = [
    "CPW",
    "Agent",
    "CVaR",
    "Evaluation",
    "Neutral",
    "Norm",
    "Pow",
    "QuantailError",
    "Wang",
    "evaluate",
    "load",
    "make",
    "resume",
    "train",
]
