"""The configuration of a run: the defaults, changed by the preset, the agent and the user in turn."""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quantail import registry
from quantail.config import PARTS, Changes, Config, canonical, coerce, flattened, is_dotted
from quantail.config.flat import DEFAULT_PARTS, FAMILY, owner_of
from quantail.config.toml import naming, read_toml
from quantail.errors import QuantailError, did_you_mean
from quantail.part_config import fields_of
from quantail.recipes.agents import Recipe
from quantail.recipes.presets import Preset
from quantail.settings import APEX, NOISY, OURS, PRIORITIZED
from quantail.training.config import RunConfig
from quantail.trust import Origin, origin_of

# The settings by which an agent is named: those that differ from it are listed where it runs.
NAMED = ("head", "torso", "dueling", "noisy", "target", "double", "sampler", "exploration", "learner")
# Noisy layers explore by themselves, unless the agent or the user asks for more.
NOISY_NEEDS = {"epsilon_start": 0.0, "epsilon_end": 0.0}


@dataclass(frozen=True)
class Layer:
    """Changes to the settings, and where they come from."""

    source: str
    changes: Changes
    borrowed: Mapping[str, str] = field(default_factory=dict)  # settings from another source
    of_file: bool = False  # whether a TOML file gives them, which may name code
    head: str = ""  # the head that they are for, where they are for one alone


@dataclass(frozen=True)
class Composition:
    """A configuration, and where its settings come from."""

    config: Config
    sources: Mapping[str, str]  # of each setting that differs from its default


def compose(
    preset: str, changes: Changes, base: str = "", origin: Origin | None = None, family: str = ""
) -> Config:
    """Return the configuration of a run; takes the arguments of `composition`."""
    return composition(preset, changes, base, origin, family).config


def composition(
    preset: str, changes: Changes, base: str = "", origin: Origin | None = None, family: str = ""
) -> Composition:
    """Compose the configuration of a run, and say where its settings come from.

    `preset` is a name or the path of a TOML file. A file is applied on top of the preset `base` and of
    its agent, so it needs to list only what it changes. If the user chooses another agent than the
    file's, the file does not change that agent. `origin` is the file with the modules that the user
    trusts: parts that the file names are imported only from those. `family` is the family of the
    environment; without it, that of the preset.
    """
    changes, family = flattened(changes), family and registry.text_of(FAMILY, family)
    path = preset_file(preset)
    file = read_toml(Path(path)) if path else {}
    if path and origin is None:
        origin = origin_of(path, ())

    def merged_with(changes: Changes) -> tuple[dict[str, Any], dict[str, str]]:
        layers = _layers(preset, base if path else preset, file, changes, origin)
        return _merged(layers, origin, family)

    merged, named = merged_with(changes)
    if family and merged[FAMILY] != family:
        asked, found = (registry.label(FAMILY, one) for one in (merged[FAMILY], family))
        raise QuantailError(
            f"family takes {found}, which is the one of the environment, not {asked}."
            if FAMILY in changes
            else f"preset {preset} is for the environments of the family {asked}, not for those of the "
            f"family {found}: choose another preset."
        )
    try:
        config = Config.fitting(merged | {"preset": preset})
    except QuantailError:
        if path:
            with naming(path):  # if its own settings are to blame
                Config.fitting(merged_with({})[0])
        raise
    config.require_active(canonical(changes, config.part_names))
    if path:
        with naming(path):
            _require_used(file, merged_with({})[0], config, knows_family=bool(family))
    usual = Config.fitting(config.part_names).to_dict() | DEFAULT_PARTS
    values = config.to_dict()
    sources = {k: v for k, v in named.items() if k in values and values[k] != usual.get(k)}
    return Composition(config, sources)


def _require_used(file: Changes, alone: Changes, config: Config, *, knows_family: bool) -> None:
    """Raise an error for a setting of a file that has no effect although the parts are the file's own.

    `alone` are the settings without the user's changes, which may choose other parts. Without an
    environment, settings of any family may have an effect.
    """
    values = config.to_dict()
    for name in canonical(file, {kind: alone[kind] for kind in DEFAULT_PARTS}):
        if config.is_active(name) or is_dotted(name):
            continue
        owner = owner_of(name)
        if owner == FAMILY and not knows_family and FAMILY not in file:
            continue
        if owner not in alone or coerce(owner, alone[owner]) == values[owner]:
            config.require_active([name])


def parts_of(config: Config) -> list[str]:
    """Describe the parts in which a configuration differs from the agent that it names."""
    if not registry.is_known("agent", config.run.agent):
        return []
    recipe: Recipe = registry.find("agent", config.run.agent)
    usual = Config.fitting(recipe.parts).to_dict()
    values, differing = config.to_dict(), []
    for name in NAMED:
        if name not in values or values[name] == usual.get(name, False):
            continue
        if isinstance(values[name], bool):
            differing.append(f"with {name}" if values[name] else f"without {name}")
        else:
            differing.append(f"with {registry.label(name, values[name])} {name}")
    return differing


def preset_file(preset: str) -> str:
    """Return the path if a preset is a TOML file, and "" if it is a name; raise an error otherwise."""
    if registry.is_known("preset", preset):
        return ""
    if preset.endswith(".toml"):
        return preset
    known = registry.parts("preset")
    raise QuantailError(
        f"unknown preset {preset!r}: it takes {', '.join(known)} or the path of a .toml file."
        f"{did_you_mean(preset, known)}"
    )


def _merged(
    layers: Iterable[Layer], origin: Origin | None, family: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Apply the layers one after another; return the settings and the source of each.

    The parts that the layers name are imported. A setting that only the chosen part has belongs to the
    part that its layer names, or else the layers below: a layer above that chooses another part drops
    it. `family` is that of the environment, if there is one.
    """
    merged: dict[str, Any] = DEFAULT_PARTS | ({FAMILY: family} if family else {})
    sources: dict[str, str] = {}
    own: dict[tuple[str, str], tuple[Any, str]] = {}  # such settings by the part and their name
    for layer in layers:
        with naming(layer.source) if layer.of_file else nullcontext():
            for kind, value in layer.changes.items():
                if kind in PARTS:
                    merged[kind] = _admitted(kind, value, origin if layer.of_file else None)
                elif kind == FAMILY:  # not imported, because the environment has brought it
                    merged[kind] = registry.text_of(kind, value)
            parts = {kind: merged[kind] for kind in DEFAULT_PARTS}
            parts |= {"head": layer.head} if layer.head else {}
            changes = canonical(layer.changes, parts)
        for name, value in changes.items():
            source = layer.borrowed.get(name, layer.source)
            if is_dotted(name):
                own[parts[name.partition(".")[0]], name] = value, source
                continue
            sources[name] = source
            if name not in DEFAULT_PARTS:
                merged[name] = value
    for (part, name), (value, source) in own.items():
        if part == merged[name.partition(".")[0]]:
            merged[name], sources[name] = value, source
    return merged, sources


def _admitted(kind: str, value: object, origin: Origin | None) -> str:
    """Import a part if need be, and return the text by which the run remembers it."""
    if isinstance(value, str):
        registry.admit(kind, value, origin)
    return registry.text_of(kind, value)


def _layers(
    preset: str, under: str, file: Changes, changes: Changes, origin: Origin | None
) -> list[Layer]:
    """Return the changes to the defaults in the order in which they apply.

    `file` is what a preset that is a file changes; `under` is the preset below it, or the preset itself.
    """
    of_file = str(file.get("agent", changes.get("agent", RunConfig.agent)))
    agent = str(changes.get("agent", of_file))
    with naming(preset) if agent == file.get("agent") else nullcontext():
        recipe: Recipe = registry.find("agent", agent)
    if agent != of_file:
        # The user chose another agent than the file: ignore the file's settings that agents define.
        usual: Recipe = registry.find("agent", of_file)
        defined = {"agent", "n_step", *NAMED, *_defined_by(usual, under), *_defined_by(recipe, under)}
        defined |= _with_another_default(_head_of(usual), _head_of(recipe))
        file = {k: v for k, v in file.items() if not {k, k.partition(".")[0]} & defined}
    presets = _chain(under)
    above: dict[str, Any] = {kind: DEFAULT_PARTS[kind] for kind in ("head", "target")}
    for one in presets.values():
        above |= one.settings
    above |= recipe.parts
    for name in presets:
        above |= recipe.on.get(name, {})
    above |= {**file, **changes}
    head = registry.text_of("head", above["head"])
    of_preset = [
        layer
        for name, one in presets.items()
        for layer in (
            Layer(one.source or _whose("preset", name), one.settings),
            Layer(_whose("preset", name), _for_head(one, head), one.borrowed, head=head),
        )
    ]
    paper = recipe.paper or f"agent {agent}"
    on_atari = "atari-paper" in presets
    of_agent = [
        Layer(paper, recipe.on.get(name, {}), recipe.borrowed)
        if on_atari
        else Layer(_whose("agent", agent), recipe.on.get(name, {}))
        for name in presets
    ]
    named_by_file = "target" in file and "target" not in changes
    target = _admitted("target", above["target"], origin if named_by_file else None)
    needed = {**(NOISY_NEEDS if coerce("noisy", above.get("noisy", False)) else {})}
    layers = [
        *of_preset,
        Layer(NOISY, needed),
        Layer(f"target {target}", registry.find("target", target).needs),
        Layer(paper, {"agent": agent, **recipe.parts}),
        Layer("one for each worker", _envs_of_workers(above)),
        Layer(APEX, {"sampler": "prioritized"} if above.get("engine") == "ray" else {}),
        *of_agent,
        Layer(preset, file, of_file=True),
        Layer("you", changes),
    ]
    # β of prioritized replay reaches 1 after the steps that the run starts with. The number is saved
    # with the run, so that β stays at 1 when the run is extended.
    steps = [one.changes["steps"] for one in layers if "steps" in one.changes] or [RunConfig.steps]
    return [Layer(PRIORITIZED, {"importance_steps": coerce("steps", steps[-1])}), *layers]


def _envs_of_workers(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the number of environments if workers are asked for and are more than it would be."""
    workers = coerce("workers", settings.get("workers", 0))
    return {"num_envs": workers} if workers > coerce("num_envs", settings.get("num_envs", 1)) else {}


def _chain(preset: str) -> dict[str, Preset]:
    """Return a preset after all those that it is like, the plainest first."""
    chain: dict[str, Preset] = {}
    while preset:
        if preset in chain:
            raise QuantailError(f"preset {preset!r} is like itself, through {', '.join(chain)}.")
        chain = {preset: registry.find("preset", preset), **chain}
        preset = chain[preset].like
    return chain


def _for_head(preset: Preset, head: str) -> dict[str, Any]:
    """Return the settings of a preset for a head, which it may name in any way."""
    found: dict[str, Any] = {}
    for name, changes in preset.heads.items():
        if registry.text_of("head", name) == head:
            found |= changes
    return found


def _whose(kind: str, name: str) -> str:
    """Return the source of settings that an agent or a preset gives without a source."""
    return OURS if name in registry.built_in(kind) else f"{kind} {name}"


def _defined_by(recipe: Recipe, preset: str) -> set[str]:
    """Return the names of the settings that an agent defines."""
    names = set(recipe.parts)
    for name, one in _chain(preset).items():
        names |= {*recipe.on.get(name, {}), *_for_head(one, _head_of(recipe))}
    if recipe.parts.get("noisy"):
        names |= NOISY_NEEDS.keys()
    return names


def _head_of(recipe: Recipe) -> str:
    return registry.text_of("head", recipe.parts.get("head", DEFAULT_PARTS["head"]))


def _with_another_default(head: str, other: str) -> set[str]:
    """Return the settings that two heads share by name, but with different defaults."""
    defaults = [
        {one.name: one.default for one in fields_of(registry.find("head", name))}
        for name in (head, other)
    ]
    return {name for name, value in defaults[0].items() if defaults[1].get(name, value) != value}
