"""Schedules: a number as a function of the step."""


def linear(step: int, start: float, end: float, begin: int, length: int) -> float:
    """`start` until step `begin`, then on a straight line to `end` over `length` steps."""
    if step < begin:
        return start
    if step >= begin + length:
        return end
    return start + (end - start) * (step - begin) / length
