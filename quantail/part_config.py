"""The `Config` of a part: a dataclass of its own settings."""

from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any

from quantail.errors import QuantailError

VALUES = (int, float, bool, str, tuple)  # the types of settings


@dataclass(frozen=True)
class NoConfig:
    """The settings of a part that has none."""


def config_class(part: Any) -> type:
    """Return the dataclass of a part's own settings."""
    config: type = getattr(part, "Config", NoConfig)
    return config


def fields_of(part: Any) -> tuple[Field[Any], ...]:
    """Return the fields of a part's `Config`."""
    config = config_class(part)
    return fields(config) if is_dataclass(config) else ()


def is_flat(part: Any, name: str) -> bool:
    """Return whether a field of a part's `Config` is declared by one of Quantail's own classes."""
    field = config_class(part).__dataclass_fields__[name]  # type: ignore[attr-defined]
    for base in reversed(config_class(part).__mro__):  # a field that is inherited is the same object
        if vars(base).get("__dataclass_fields__", {}).get(name) is field:
            return base.__module__.partition(".")[0] == "quantail"
    return False


def check_config(kind: str, name: str, part: Any) -> None:
    """Raise an error if a part's `Config` is not a dataclass whose fields have plain defaults."""
    config = config_class(part)
    if not isinstance(config, type) or not is_dataclass(config):
        raise QuantailError(f"{kind} {name!r} takes a dataclass as its Config, not {config!r}.")
    for one in fields(config):
        if one.name == "name":
            raise QuantailError(
                f"{kind} {name!r}: a setting of its Config is called name, which in a table means "
                f"the {kind} itself: call it something else."
            )
        if one.default is MISSING or type(one.default) not in VALUES:
            raise QuantailError(
                f"{kind} {name!r}: the setting {one.name} of its Config needs a default that is a whole "
                "number, a number, a truth value, a text or a tuple of whole numbers."
            )
