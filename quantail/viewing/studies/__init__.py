"""The figures of a study, drawn from its results on disk."""

from quantail.viewing.studies.draw import draw_study

__all__ = ["draw_study"]
