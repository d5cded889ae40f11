"""Schedules: a number as a function of the step."""


def linear(step: int, start: float, end: float, begin: int, length: int) -> float:
    """Return `start` until step `begin`, then change linearly to `end` over `length` steps."""
    if step < begin:
        return start
    if step >= begin + length:
        return end
    return start + (end - start) * (step - begin) / length
