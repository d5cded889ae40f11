"""The settings of all groups and parts by their flat names, as files and the command line use them."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from quantail import registry
from quantail.agents.config import ExplorationConfig
from quantail.envs.config import EnvironmentConfig
from quantail.errors import QuantailError, did_you_mean
from quantail.evaluation.config import EvaluationConfig
from quantail.learning.config import LearnerConfig
from quantail.networks.config import NetworkConfig
from quantail.part_config import fields_of
from quantail.parts import Group, part
from quantail.replay.config import ReplayConfig
from quantail.risk.config import RiskConfig
from quantail.settings import OURS, About, about_of, coerced
from quantail.training.config import RunConfig

Changes = Mapping[str, Any]

# The group `head` is the head itself, with the settings that it has.
HEAD = part("head", "implicit", "representation of the return distribution", source=OURS)
GROUPS: dict[str, type[Group] | None] = {
    "run": RunConfig,
    "risk": RiskConfig,
    "environment": EnvironmentConfig,
    "network": NetworkConfig,
    "head": None,
    "learner": LearnerConfig,
    "replay": ReplayConfig,
    "exploration": ExplorationConfig,
    "evaluation": EvaluationConfig,
}
FIELDS: dict[str, tuple[dataclasses.Field[Any], ...]] = {
    name: dataclasses.fields(group) if group else (HEAD,)  # type: ignore[arg-type]
    for name, group in GROUPS.items()
}
FAMILY = "family"  # a part that the environment decides: files name it, the command line does not
ABOUT_FAMILY = about_of(FIELDS["environment"][0])
# The settings that name a part, by its name or as module:Class, and the part that is the default.
DEFAULT_PARTS: dict[str, str] = {
    about_of(one).kind: one.metadata["default"]
    for fields in FIELDS.values()
    for one in fields
    if about_of(one).kind
}
PARTS = tuple(kind for kind in DEFAULT_PARTS if kind != FAMILY)
RISKS = ("risk", "behaviour_risk", "target_risk", "evaluation_risk")  # settings that name a measure


@dataclass(frozen=True)
class Flat:
    """A setting: its group, its documentation, its default, and the kind of the parts that have it."""

    group: str
    about: About
    default: Any
    kind: str = ""  # "" if it belongs to the group itself


@cache
def flat_settings() -> dict[str, Flat]:
    """Return all settings of the groups and of the built-in parts, in the order of the groups."""
    found: dict[str, Flat] = {}

    def add(name: str, flat: Flat, owner: str) -> None:
        # Parts of one kind may share a setting.
        if name in found and not found[name].kind == flat.kind != "":
            raise taken_name(owner, name, found[name])
        found.setdefault(name, flat)

    for group, fields in FIELDS.items():
        for one in fields:
            about = about_of(one)
            if not about.kind:
                add(one.name, Flat(group, about, one.default), group)
                continue
            if about.kind != FAMILY:
                add(about.kind, Flat(group, about, one.metadata["default"]), group)
            for name, built_in in registry.built_in(about.kind).items():
                for own in fields_of(built_in):
                    flat = Flat(group, about_of(own), own.default, about.kind)
                    add(own.name, flat, f"{about.kind} {name}")
    return found


def taken_name(owner: str, name: str, flat: Flat) -> QuantailError:
    """Return the error for a setting whose flat name is that of another one."""
    whose = f"the {flat.kind}" if flat.kind else f"the group {flat.group}"
    return QuantailError(
        f"{owner}: {name} is a setting of {whose} already: call this one something else."
    )


def canonical(changes: Changes, parts: Mapping[str, str]) -> dict[str, Any]:
    """Return changes by the names under which these parts have their settings.

    The settings of built-in parts have flat names, so `head.kappa` becomes `kappa`. The names of a part
    that is not loaded stay as they are.
    """
    named: dict[str, Any] = {}
    for name, value in changes.items():
        own = _canonical(name, parts)
        if own in named:
            other = (
                name if name != own else next(one for one in changes if _canonical(one, parts) == own)
            )
            raise QuantailError(f"{own} is given twice, as {own} and as {other}: give it once.")
        named[own] = value
    return named


def _canonical(name: str, parts: Mapping[str, str]) -> str:
    kind, _, own = name.partition(".")
    part = parts.get(kind, "") if own else ""
    if not part or not registry.is_known(kind, part) or own in registry.own_fields(kind, part):
        return name
    flat = flat_settings().get(own)
    if flat is not None and flat.kind != kind:
        raise QuantailError(
            f"{kind} {registry.label(kind, part)} has no setting {name}: {own} stands at the top level, "
            f"without {kind}."
        )
    return name if flat is None else own


def coerce(name: str, value: Any) -> Any:
    """Convert a value from Python, JSON, TOML or a flag to the type of the setting.

    The value of a dotted setting stays as it is until the part that owns it is known.
    """
    _require_setting(name)
    if is_dotted(name):
        return value
    if name in DEFAULT_PARTS:
        return registry.text_of(name, value)
    flat = flat_settings()[name]
    return coerced(name, value, flat.default, flat.about)


def is_dotted(name: str) -> bool:
    """Return whether a name can be that of a setting that a part from outside has of its own."""
    kind, _, own = name.partition(".")
    return kind in DEFAULT_PARTS and own.isidentifier()


def flattened(changes: Changes) -> dict[str, Any]:
    """Return changes with the tables of parts as dotted names.

    `{"head": {"name": "my_package:MyHead", "width": 8}}` becomes `{"head": "my_package:MyHead",
    "head.width": 8}`.
    """
    flat: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in DEFAULT_PARTS or not isinstance(value, Mapping):
            flat[name] = value
            continue
        flat |= {name if key == "name" else f"{name}.{key}": one for key, one in value.items()}
    return flat


def require_settings(changes: Changes) -> None:
    """Raise an error if one of the names is not a setting."""
    for name in flattened(changes):
        _require_setting(name)


def is_setting(name: str) -> bool:
    """Return whether a name is that of a setting."""
    return name in flat_settings() or name == FAMILY or is_dotted(name)


def _require_setting(name: str) -> None:
    if not is_setting(name):
        raise QuantailError(f"unknown setting {name!r}.{did_you_mean(name, flat_settings())}")


def choices(name: str) -> tuple[str, ...]:
    """Return the values that a setting takes, where they can be listed."""
    if name not in PARTS:
        return flat_settings()[name].about.choices
    return (*registry.parts(name), "module:Class")


def applies(name: str, values: Changes) -> bool:
    """Return whether a setting has an effect, given these values of other settings; see `About.only`."""
    flat = flat_settings().get(name)
    if flat is None or not flat.about.only:
        return True
    other, *active = flat.about.only
    return str(coerce(other, values.get(other, flat_settings()[other].default))) in active


def owner_of(name: str) -> str:
    """Return the setting that decides whether this one is active: that of its part, or another."""
    flat = flat_settings()[name]
    return flat.kind or next(iter(flat.about.only), "")


def only_with(name: str) -> str:
    """Describe when a setting is active, such as "only with head implicit"; "" if it always is."""
    flat = flat_settings()[name]
    kind, values = flat.kind, list(flat.about.only)
    if kind:
        values = [one for one in registry.parts(kind) if name in registry.flat_fields(kind, one)]
    elif values:
        kind = values.pop(0)
    else:
        return ""
    return f"only with {kind}" if values == ["True"] else f"only with {kind} {' or '.join(values)}"
