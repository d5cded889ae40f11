"""Evaluation: whole episodes, raw scores, and nothing that training could notice."""

from quantail.evaluation.evaluate import Evaluation, evaluate, play_episodes
from quantail.evaluation.protocols import PROTOCOLS, Protocol

__all__ = ["PROTOCOLS", "Evaluation", "Protocol", "evaluate", "play_episodes"]
