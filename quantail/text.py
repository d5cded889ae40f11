"""Formatting of counts and durations."""

import math


def counted(count: int, what: str) -> str:
    """Return a count with its noun, such as "1 episode" or "30 episodes"."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def duration(seconds: float) -> str:
    """Return a duration such as "1:23" or "2:03:04", or "–" if it is unknown."""
    if math.isnan(seconds) or math.isinf(seconds):
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
