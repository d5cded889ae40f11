"""Agents and presets by name, and the configuration of a run that follows from them."""

from quantail.recipes.agents import AGENTS, Recipe
from quantail.recipes.compose import Composition, compose, composition, parts_of, preset_file
from quantail.recipes.for_env import configure, configured
from quantail.recipes.presets import PRESETS, Preset

__all__ = [
    "AGENTS",
    "PRESETS",
    "Composition",
    "Preset",
    "Recipe",
    "compose",
    "composition",
    "configure",
    "configured",
    "parts_of",
    "preset_file",
]
