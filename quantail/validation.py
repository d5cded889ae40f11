"""Checks of values that come from Python, a file or the command line: one function per kind of value.

Each function returns the value in its type, or raises a `QuantailError` whose sentence names the value,
what it takes and what it got. Numbers may be given as text, as on the command line.
"""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TypeVar

from quantail.errors import QuantailError, did_you_mean

Choice = TypeVar("Choice")
LARGEST = 2**63 - 1  # whole numbers end up in 64 bits


def whole_number(name: str, value: object, least: float = -math.inf, most: float = math.inf) -> int:
    """Return a whole number within its range; it may be given as 200_000, 2e5 or 200000.0."""
    try:
        found = _whole(value)
    except (TypeError, ValueError, OverflowError):
        raise wrong(name, f"a whole number{limits(least, most)}", value) from None
    if abs(found) > LARGEST:
        least, most = max(least, -LARGEST), min(most, LARGEST)
    if not least <= found <= most:
        raise wrong(name, f"a whole number{limits(least, most)}", value)
    return found


def number(
    name: str,
    value: object,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    above: float = -math.inf,
) -> float:
    """Return a finite number within its range; `above` is a lower bound that is not part of it."""
    try:
        found = _real(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not (least <= found <= most and found > above and math.isfinite(found)):
        raise wrong(name, f"a number{limits(least, most, above)}", value)
    return found


def probability(name: str, value: object) -> float:
    """Return a number from 0 to 1."""
    return number(name, value, 0, 1)


def one_of(name: str, value: object, choices: Iterable[Choice], also: str = "") -> Choice:
    """Return the choice that equals the value; `also` describes what else the caller takes."""
    known = list(choices)
    for one in known:
        if one == value:
            return one
    names = [str(one) for one in known]
    guess = did_you_mean(value, names) if isinstance(value, str) else ""
    raise wrong(name, either([*names, also] if also else names), value, guess)


def string(name: str, value: object) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise wrong(name, "a string", value)
    return value


def path(name: str, value: object) -> Path:
    """Return a path, given as one or as a string."""
    if not isinstance(value, str | PathLike):
        raise wrong(name, "a path", value)
    return Path(value)


def wrong(name: str, takes: str, value: object, guess: str = "") -> QuantailError:
    """Return the error for a value that is not what `takes` says."""
    return QuantailError(f"{name} takes {takes}, not {value!r}.{guess}")


def limits(least: float = -math.inf, most: float = math.inf, above: float = -math.inf) -> str:
    """Return a range in words, such as " from 0 to 1"; "" if it has no limits."""
    lower = f"above {_shown(above)}" if above > -math.inf else ""
    if not lower and least > -math.inf:
        if most < math.inf:
            return f" from {_shown(least)} to {_shown(most)}"
        lower = f"of at least {_shown(least)}"
    upper = f"at most {_shown(most)}" if most < math.inf else ""
    if lower and upper:
        return f" {lower} and {upper}"
    return f" {lower}" if lower else f" of {upper}" if upper else ""


def either(names: Iterable[str]) -> str:
    """Return a list in words: a, b or c."""
    *others, last = names
    return " or ".join([", ".join(others), last]) if others else last


def _whole(value: object) -> int:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass  # 2e5
    found = _real(value)
    if not found.is_integer():
        raise ValueError
    return int(found)


def _real(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | Real):
        raise TypeError
    return float(value)


def _shown(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"
