"""Figures, reports, videos, the live page, and the window in which a person plays."""

from quantail.viewing.overview import draw_overview
from quantail.viewing.report import write_report
from quantail.viewing.return_figure import draw_returns

__all__ = ["draw_overview", "draw_returns", "write_report"]
