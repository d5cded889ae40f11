"""Evaluate agents on whole episodes with raw scores, without touching the state of training."""

from quantail.evaluation.evaluate import Evaluation, evaluate, play_episodes
from quantail.evaluation.protocols import PROTOCOLS, Protocol

__all__ = ["PROTOCOLS", "Evaluation", "Protocol", "evaluate", "play_episodes"]
