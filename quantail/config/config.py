"""The configuration of a run: groups of settings, each owned by the package that uses it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quantail import registry
from quantail.agents.config import ExplorationConfig
from quantail.config.flat import (
    ABOUT_FAMILY,
    DEFAULT_PARTS,
    FAMILY,
    FIELDS,
    GROUPS,
    HEAD,
    Changes,
    applies,
    canonical,
    coerce,
    flat_settings,
    flattened,
    only_with,
    owner_of,
    require_settings,
    taken_name,
)
from quantail.config.toml import read_toml, to_toml, toml_path
from quantail.envs.config import EnvironmentConfig
from quantail.errors import QuantailError
from quantail.evaluation.config import EvaluationConfig
from quantail.files import write_text
from quantail.learning.config import LearnerConfig
from quantail.networks.config import NetworkConfig
from quantail.part_config import fields_of
from quantail.parts import Group, Part, Unloaded, unknown_setting
from quantail.replay.config import ReplayConfig
from quantail.risk.config import RiskConfig
from quantail.settings import About, about_of, shown
from quantail.training.config import RunConfig
from quantail.trust import Origin, Trust, is_missing, modules_of, origin_of
from quantail.validation import wrong

# Settings that `replace` does not change, because it would leave those that follow from them.
DECISIVE = {
    "agent": "which decides other settings",
    "preset": "which decides other settings",
    FAMILY: "which is that of the environment",
}


@dataclass(frozen=True)
class Config(Group):
    """All settings of a run, in groups. The defaults are those of the IQN paper.

        config = quantail.configure("CartPole-v1", agent="iqn")   # what `quantail.train` would use
        config.learner.learning_rate
        config = config.replace(learning_rate=1e-4, n_step=3)
        print(config)
        quantail.train("CartPole-v1", config=config)

    Every setting has a flat name, which the command line and TOML files use too: `replace` takes them,
    `to_dict` returns them. A *step* is one action of the agent; a *frame* is one of the emulator.
    """

    run: RunConfig = field(default_factory=RunConfig)
    risk: RiskConfig = field(default_factory=RiskConfig)
    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    head: Part = HEAD
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    exploration: ExplorationConfig = field(default_factory=ExplorationConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        for name, group in GROUPS.items():
            if group and not isinstance(getattr(self, name), group):
                takes = f"a {group.__name__}, such as config.{name}"
                raise wrong(name, takes, getattr(self, name))
        super().__post_init__()
        values, known = self.to_dict(), flat_settings()
        self.require_active(
            name
            for name, value in values.items()
            if name in known and value != known[name].default and not applies(name, values)
        )
        run, learner, envs = self.run, self.learner, self.run.total_envs
        if learner.learning_starts > run.steps:
            raise QuantailError(
                f"steps {run.steps:,} end before learning begins: "
                f"raise steps or lower learning_starts, which is {learner.learning_starts:,}."
            )
        if learner.learning_starts <= learner.n_step * envs:
            raise QuantailError(
                f"learning_starts {learner.learning_starts} comes before the first n-step return is "
                f"complete: with n_step {learner.n_step} and {envs} environments it must be more than "
                f"{learner.n_step * envs}."
            )
        least = self.environment.stack + learner.n_step + 1
        if self.replay.buffer_size // envs < least:
            raise QuantailError(
                f"buffer_size {self.replay.buffer_size} leaves {self.replay.buffer_size // envs} "
                f"steps for each of {envs} environments: stack and n_step need at least {least}."
            )
        target = self.learner.target
        for name, needed in target.find().needs.items() if target.is_loaded else ():
            if (found := values[name]) != needed:
                raise QuantailError(f"target {target.label} takes {name} {needed}, not {found}.")

    @property
    def parts(self) -> dict[str, Part]:
        """The parts that the configuration chooses, by their kind."""
        groups = [getattr(self, group) if GROUPS[group] else self for group in FIELDS]
        values = [vars(group).values() for group in groups]
        return {one.kind: one for group in values for one in group if isinstance(one, Part)}

    @property
    def part_names(self) -> dict[str, str]:
        """The names of these parts, by their kind."""
        return {kind: one.name for kind, one in self.parts.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return all settings by their flat names, as plain values that are ready for JSON or TOML."""
        values: dict[str, Any] = {}
        for group, fields in FIELDS.items():
            for one in fields:
                value = getattr(getattr(self, group), one.name) if GROUPS[group] else self.head
                if isinstance(value, Part):
                    values |= {value.kind: value.name, **value.to_dict()}
                else:
                    values[one.name] = value
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def __str__(self) -> str:
        """Return the settings that apply as a TOML file, with their help, units and sources."""
        return to_toml(self, f"agent {self.run.agent}, preset {self.run.preset or 'none'}", {})

    def save(self, path: str | Path) -> None:
        """Write the settings that apply to a TOML file, which `load` and `--preset FILE` read."""
        write_text(toml_path(path), str(self))

    @classmethod
    def load(cls, path: str | Path, trust: Trust = ()) -> "Config":
        """Read a configuration from a TOML file.

        Settings that the file does not name are those of its agent or else the defaults, whatever the
        environment: `quantail.configure(env, preset=path)` fills in those of the environment's preset.
        Parts from outside are imported only from modules in `trust`.
        """
        from quantail.recipes import compose  # which is above this package: a file names an agent

        family = str(read_toml(toml_path(path)).get(FAMILY, DEFAULT_PARTS[FAMILY]))
        origin = origin_of(path, trust)
        return compose(str(path), {}, origin=origin, family=family).loaded(origin)

    @classmethod
    def from_dict(cls, values: Changes) -> "Config":
        """Return the configuration with these settings, by their flat names; others are the defaults.

        A setting that does not apply is refused, unless it has its default, as in `to_dict`. Parts that
        are not loaded keep their settings as they are, until `loaded` is called.
        """
        values, config = _named(values), cls.fitting(values)
        used = config.to_dict()
        config.require_active(
            name
            for name, value in values.items()
            if name not in used or not (config.is_active(name) or coerce(name, value) == used[name])
        )
        return config

    @classmethod
    def fitting(cls, values: Changes) -> "Config":
        """Return the configuration with those of these settings that apply."""
        values = _named(values)
        values = {name: value for name, value in values.items() if applies(name, values)}
        groups: dict[str, Any] = {}
        for name, fields in FIELDS.items():
            chosen = {
                one.name: _part(kind, values) if (kind := about_of(one).kind) else values[one.name]
                for one in fields
                if about_of(one).kind or one.name in values
            }
            group = GROUPS[name]
            groups[name] = group(**chosen) if group else chosen[name]
        return cls(**groups)

    def replace(self, **changes: Any) -> "Config":
        """Return a copy with some settings changed, by their flat names.

        A part that takes the place of another one has its own defaults. The settings of a part from
        outside are given as a table, such as `head={"name": "my_package:MyHead", "width": 8}`.
        """
        flat, values = _named(changes, self.part_names), self.to_dict()
        for name, why in DECISIVE.items():
            if name in flat and coerce(name, flat[name]) != values[name]:
                raise QuantailError(
                    f"replace does not take another {name}, {why}: create a new configuration with "
                    "quantail.configure."
                )
        for kind, one in self.parts.items():
            if kind in flat and registry.text_of(kind, flat[kind]) != one.name:
                for name in one.to_dict():
                    del values[name]
        config = Config.fitting(values | flat)
        config.require_active(flat)
        return config

    def is_active(self, name: str) -> bool:
        """Return whether a setting has an effect, given the other settings."""
        values = self.to_dict()
        return name in values and applies(name, values)

    def require_active(self, names: Iterable[str]) -> None:
        """Raise an error for the first of these settings that has no effect."""
        for name in names:
            if self.is_active(name):
                continue
            kind, _, own = name.partition(".")
            if own:
                raise unknown_setting(kind, self.parts[kind].name, own)
            owner = owner_of(name)
            value = shown(self.to_dict()[owner])
            raise QuantailError(
                f"{name} has no effect here: it is used {only_with(name)}, and {owner} is {value}."
            )

    def about(self, name: str) -> About:
        """Return the documentation of a setting; that of the chosen part, if the part has it."""
        for kind, one in self.parts.items():
            for own in fields_of(one.find()) if one.is_loaded else ():
                if name in (own.name, f"{kind}.{own.name}") and name in one.to_dict():
                    return about_of(own)
        if name == FAMILY:
            return ABOUT_FAMILY
        return flat_settings()[name].about if name in flat_settings() else About(source="")

    def names_of_code(self) -> tuple[str, ...]:
        """Return the texts of parts and risk measures that no registered name stands for.

        Those that are `module:Class` can be used again only if the user trusts the module.
        """
        named = [(kind, one.name) for kind, one in self.parts.items()]
        named += [("risk", text) for text in self.risk.texts()]
        return tuple(text for kind, text in named if registry.label(kind, text) == text)

    def loaded(self, origin: Origin | None) -> "Config":
        """Return the configuration with all parts loaded, where the user trusts their modules.

        `origin` is the file that names them.
        """
        unknown = {kind: one.name for kind, one in self.parts.items() if not one.is_loaded}
        if origin is not None:
            found = [one for one in modules_of(unknown.values()) if not is_missing(one)]
            origin.require(*found)  # all at once, so that the user is asked once
        for kind, name in unknown.items():
            registry.admit(kind, name, origin)
        return Config.from_dict(self.to_dict()) if unknown else self


def require_config(config: object) -> Config:
    """Return the configuration that a user gives; raise an error if it is something else."""
    if not isinstance(config, Config):
        raise wrong(
            "config",
            "a quantail.Config, which quantail.configure and quantail.Config.load return",
            config,
        )
    return config


def _named(values: Changes, parts: Mapping[str, str] = DEFAULT_PARTS) -> dict[str, Any]:
    """Return settings by the names under which the parts that they choose have them.

    `parts` are those of the kinds for which the settings choose none.
    """
    values = flattened(values)
    require_settings(values)
    return canonical(
        values, {kind: registry.text_of(kind, values.get(kind, part)) for kind, part in parts.items()}
    )


def _part(kind: str, values: Mapping[str, Any]) -> Part:
    """Return the part that flat settings choose, with those of the settings that it has."""
    name = registry.text_of(kind, values.get(kind, DEFAULT_PARTS[kind]))
    prefix = f"{kind}."
    own = {key.removeprefix(prefix): one for key, one in values.items() if key.startswith(prefix)}
    if registry.is_known(kind, name):
        flat = registry.flat_fields(kind, name)
        for key in flat:
            if (known := flat_settings().get(key)) and known.kind != kind:
                raise taken_name(f"{kind} {registry.label(kind, name)}", key, known)
        return Part.of(kind, name, {key: one for key, one in values.items() if key in flat} | own)
    kept = {key: one for key, one in values.items() if key.startswith(prefix)}
    kept |= {key: one for key, one in values.items() if _may_have(kind, key)}
    return Part(kind, name, Unloaded(kept))


def _may_have(kind: str, name: str) -> bool:
    """Return whether a part of this kind that is not loaded may have a flat setting."""
    flat = flat_settings().get(name)
    return flat is not None and flat.kind == kind
