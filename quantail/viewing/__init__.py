"""Viewing: figures of a run."""

from quantail.viewing.overview import draw_overview

__all__ = ["draw_overview"]
