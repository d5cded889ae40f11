"""The figures of a study, drawn from its results on disk."""

from quantail.viewing.studies.draw import draw_study, require_extras

__all__ = ["draw_study", "require_extras"]
