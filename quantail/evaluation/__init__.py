"""Evaluate agents on whole episodes with raw scores, without touching the state of training."""
