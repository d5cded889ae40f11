"""Atari games of the Arcade Learning Environment (ALE)."""

from quantail.envs.ale.family import Ale, AleConfig
from quantail.envs.ale.game import AtariGame

__all__ = ["Ale", "AleConfig", "AtariGame"]
