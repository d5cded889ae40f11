"""The live page: watch an agent play in the browser and change its risk measure with a slider."""

from quantail.viewing.live.serve import watch

__all__ = ["watch"]
