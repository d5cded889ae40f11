"""Agents and presets by name, and the settings of a run that follow from them."""

from quantail.recipes.agents import AGENTS, Recipe
from quantail.recipes.compose import compose, parts_of, preset_file, sources
from quantail.recipes.presets import PRESETS, Preset

__all__ = ["AGENTS", "PRESETS", "Preset", "Recipe", "compose", "parts_of", "preset_file", "sources"]
