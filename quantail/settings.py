"""Settings as fields of dataclasses: their documentation, their range, and values from text or files."""

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from quantail.errors import QuantailError
from quantail.validation import limits, number, one_of, string, whole_number, wrong

# Sources of defaults.
OURS = "ours"
PAPER = "IQN, Dabney et al. 2018"
QR = "QR-DQN, Dabney et al. 2017"
NATURE = "DQN, Mnih et al. 2015"
C51 = "C51, Bellemare et al. 2017"
NOISY = "NoisyNet, Fortunato et al. 2018"
PRIORITIZED = "prioritized replay, Schaul et al. 2016"
MUNCHAUSEN = "Munchausen, Vieillard et al. 2020"
HL_GAUSS = "HL-Gauss, Farebrother et al. 2024"
FQF = "FQF, Yang et al. 2019"
IMPALA = "IMPALA, Espeholt et al. 2018"
APEX = "Ape-X, Horgan et al. 2018"
MACHADO = "Machado et al. 2018"


@dataclass(frozen=True)
class About:
    """The documentation and the allowed values of a setting."""

    help: str = ""
    unit: str = ""
    source: str = OURS
    choices: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf
    only: tuple[str, ...] = ()  # another setting, and those of its values with which this one is active
    kind: str = ""  # the kind of part that the setting names, if it names one


def setting(
    default: Any,
    help: str = "",
    *,
    unit: str = "",
    source: str = "",
    choices: tuple[str, ...] = (),
    least: float = -math.inf,
    most: float = math.inf,
    only: tuple[str, ...] = (),
) -> Any:
    """Return a field for the `Config` of a part: a setting with its help, unit, range and source.

        @dataclass(frozen=True)
        class Config:
            width: int = quantail.setting(8, "units of the layer", least=1)

    A plain default works too. The type of the default decides which values the setting takes: int,
    float, bool, str, or a tuple of whole numbers.

    Args:
        default: The default value.
        help: What the setting is, for `--help-all` and the docs.
        unit: Its unit, such as "steps".
        source: Where the default comes from, such as a paper.
        choices: The values that a text may have.
        least: The lowest value of a number.
        most: The highest value of a number.
        only: The name of another setting, and those of its values with which this one has an effect.
    """
    about = About(help, unit, source, choices, least, most, only)
    return dataclasses.field(default=default, metadata={"about": about})


def about_of(field: dataclasses.Field[Any]) -> About:
    """Return the documentation of a dataclass field; empty where it has none."""
    about: About = field.metadata.get("about", About(source=""))
    return about


def coerced(name: str, value: Any, default: Any, about: About) -> Any:
    """Return a value from Python, JSON, TOML or a flag in the type of the default.

    Raise an error if the setting does not take it.
    """
    if about.choices:
        return one_of(name, str(value), about.choices)
    kind = type(default)
    if kind is bool:
        return _truth(name, value)
    if kind is int:
        return whole_number(name, value, about.least, about.most)
    if kind is float:
        return number(name, value, about.least, about.most)
    if kind is tuple:
        return _whole_numbers(name, value, about)
    return string(name, value)


def shown(value: Any) -> str:
    """Format the value of a setting for display."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _whole_numbers(name: str, value: Any, about: About) -> tuple[int, ...]:
    items = value.replace(",", " ").split() if isinstance(value, str) else value
    try:
        found = tuple(
            whole_number(name, one, about.least, about.most)
            for one in (items if isinstance(items, Iterable) else [items])
        )
    except QuantailError:
        found = ()
    if not found:
        bounds = limits(about.least, about.most)
        raise wrong(name, f"whole numbers{bounds}, such as 128,128", value)
    return found


def _truth(name: str, value: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in words:
        raise wrong(name, "true or false", value)
    return words[str(value).lower()]
