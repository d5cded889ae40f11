"""The parts that a configuration chooses, each with its own settings."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from quantail import registry
from quantail.errors import QuantailError, did_you_mean
from quantail.part_config import config_class, fields_of, is_flat
from quantail.settings import About, about_of, coerced


@dataclass(frozen=True)
class Unloaded:
    """The settings of a part whose code is not loaded, because the user does not trust its module."""

    values: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Part:
    """A part that a configuration chooses: its kind, its name and its own settings.

    `name` is the name under which the part is known, or `module:Class`; `config` is an instance of the
    part's `Config`.
    """

    kind: str
    name: str
    config: Any

    @classmethod
    def of(cls, kind: str, part: Any, values: Mapping[str, Any] | None = None) -> "Part":
        """Return a part, given by its name or its class, with some of its settings changed."""
        name = registry.text_of(kind, part)
        found = registry.find(kind, name)
        known = {one.name: one for one in fields_of(found)}
        changed = {}
        for key, value in (values or {}).items():
            if key not in known:
                raise unknown_setting(kind, name, key)
            default, about = known[key].default, about_of(known[key])
            changed[key] = coerced(flat_name(kind, name, key), value, default, about)
        try:
            return cls(kind, name, config_class(found)(**changed))
        except (TypeError, ValueError) as error:
            raise QuantailError(f"{kind} {registry.label(kind, name)}: {error}") from error

    @property
    def is_loaded(self) -> bool:
        """Whether the code of the part is known, so that it can be built."""
        return not isinstance(self.config, Unloaded)

    @property
    def label(self) -> str:
        """The name of the part for display."""
        return registry.label(self.kind, self.name)

    def find(self) -> Any:
        """Return the class of the part."""
        return registry.find(self.kind, self.name)

    def build(self, *arguments: Any, **options: Any) -> Any:
        """Return an instance of the part, whose last positional argument is its configuration."""
        return self.find()(*arguments, self.config, **options)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings of the part by the names that files and the command line use."""
        if not self.is_loaded:
            return dict(self.config.values)
        own = {one.name: getattr(self.config, one.name) for one in fields_of(self.find())}
        return {flat_name(self.kind, self.name, name): value for name, value in own.items()}


def part(kind: str, default: str, help: str = "", *, source: str = "") -> Any:
    """Return a field for a group of a configuration that chooses a part of this kind.

    The field takes a `Part`, a name, a class, or a table such as `{"name": "mlp", "mlp_sizes": (64,)}`.
    """
    about = About(help, source=source, kind=kind)
    return field(
        default_factory=lambda: Part.of(kind, default), metadata={"about": about, "default": default}
    )


class Group:
    """Base of the groups of a configuration: every field is checked and converted to its type."""

    def __post_init__(self) -> None:
        for one in dataclasses.fields(self):  # type: ignore[arg-type]
            about, value = about_of(one), getattr(self, one.name)
            if about.kind:
                value = _chosen(about.kind, value, one.metadata["default"])
            elif one.default is not dataclasses.MISSING:
                value = coerced(one.name, value, one.default, about)
            object.__setattr__(self, one.name, value)


def _chosen(kind: str, value: Any, default: str) -> Part:
    """Return the part that a field of a group is given."""
    if isinstance(value, Mapping):
        values = {key: setting for key, setting in value.items() if key != "name"}
        return Part.of(kind, value.get("name", default), values)
    if not isinstance(value, Part):
        return Part.of(kind, value)
    if value.kind != kind:
        raise QuantailError(f"{kind} takes a part of this kind, not the {value.kind} {value.label}.")
    return value


def flat_name(kind: str, name: str, setting: str) -> str:
    """Return the name of a part's setting in files and flags: dotted if the part is from outside."""
    return setting if is_flat(registry.find(kind, name), setting) else f"{kind}.{setting}"


def unknown_setting(kind: str, name: str, key: str) -> QuantailError:
    """Return the error for a setting that a part does not have."""
    own = registry.own_fields(kind, name)
    has = f"its own settings are {', '.join(own)}" if own else "it has none of its own"
    return QuantailError(
        f"{kind} {registry.label(kind, name)} has no setting {kind}.{key}: {has}."
        f"{did_you_mean(key, own)}"
    )
