"""The parts that the settings of a run name, and their configurations."""

from dataclasses import Field
from typing import Any

from quantail import registry
from quantail.errors import QuantailError, did_you_mean
from quantail.fields import about_of, coerced
from quantail.settings import PARTS, Settings
from quantail.trust import Origin, is_missing, modules_of


def part_of(kind: str, settings: Settings) -> Any:
    """Return the class of a part that the settings name."""
    return registry.find(kind, getattr(settings, kind))


def config_of(kind: str, settings: Settings) -> Any:
    """Return the configuration of a part, filled from flat and dotted settings."""
    name = getattr(settings, kind)
    values = {one: getattr(settings, one) for one in registry.flat_fields(kind, name)}
    try:
        return registry.config_class(registry.find(kind, name))(**values, **own_settings(kind, settings))
    except (TypeError, ValueError) as error:
        raise QuantailError(f"{kind} {registry.label(kind, name)}: {error}") from error


def own_settings(kind: str, settings: Settings) -> dict[str, Any]:
    """Return the values of all settings that a part from outside has of its own."""
    name = getattr(settings, kind)
    own = registry.own_fields(kind, name) if registry.is_known(kind, name) else {}
    given = {
        key.partition(".")[2]: value
        for key, value in settings.dotted.items()
        if key.partition(".")[0] == kind
    }
    for key in given:
        if key not in own:
            has = f"its own settings are {', '.join(own)}" if own else "it has none of its own"
            raise QuantailError(
                f"{kind} {registry.label(kind, name)} has no setting {kind}.{key}: {has}."
                f"{did_you_mean(key, own)}"
            )
    values = {}
    for key, field in own.items():
        value = given.get(key, field.default)
        values[key] = coerced(f"{kind}.{key}", value, field.default, about_of(field))
    return values


def dotted_fields(settings: Settings) -> dict[str, Field[Any]]:
    """Return the fields of all settings that parts from outside have of their own, by dotted name."""
    return {
        f"{kind}.{name}": field
        for kind in PARTS
        if registry.is_known(kind, getattr(settings, kind))
        for name, field in registry.own_fields(kind, getattr(settings, kind)).items()
    }


def admit_parts(settings: Settings, origin: Origin | None) -> None:
    """Import the parts that a file names, where the user trusts their modules."""
    if origin is not None:
        unknown = [getattr(settings, k) for k in PARTS if not registry.is_known(k, getattr(settings, k))]
        found = [one for one in modules_of(unknown) if not is_missing(one)]
        origin.require(*found)  # all at once, so that the user is asked once
    for kind in PARTS:
        registry.admit(kind, getattr(settings, kind), origin)


def check_parts(settings: Settings) -> Settings:
    """Return the settings with every own setting of the parts; raise an error for what does not fit."""
    dotted: dict[str, Any] = {}
    for kind in PARTS:
        dotted |= {f"{kind}.{name}": value for name, value in own_settings(kind, settings).items()}
        config_of(kind, settings)
    target = part_of("target", settings)
    for name, needed in target.needs.items():
        if getattr(settings, name) != needed:
            raise QuantailError(
                f"target {registry.label('target', settings.target)} takes {name} {needed}, "
                f"not {getattr(settings, name)}."
            )
    return settings.with_changes(dotted)
