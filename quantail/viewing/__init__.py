"""Viewing: figures of runs, reports, and the window in which a person plays."""

from quantail.viewing.laws import draw_returns
from quantail.viewing.overview import draw_overview
from quantail.viewing.report import write_report

__all__ = ["draw_overview", "draw_returns", "write_report"]
