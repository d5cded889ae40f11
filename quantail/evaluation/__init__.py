"""Evaluation: whole episodes, raw scores, and nothing that training could notice."""

from quantail.evaluation.evaluate import Evaluation, evaluate, play_episodes

__all__ = ["Evaluation", "evaluate", "play_episodes"]
