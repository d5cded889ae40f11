"""Read studies from TOML files: the four of the paper, and your own."""

import dataclasses
import itertools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from quantail import registry
from quantail.config import PARTS, RISKS, coerce, flattened
from quantail.envs.families import find_family, require_trusted_env
from quantail.errors import QuantailError
from quantail.experiments.results import FIRST, SCORES, THEN
from quantail.experiments.study import Axis, Study, Variant, value_name
from quantail.trust import Origin, Trust, modules_of, origin_of
from quantail.validation import number, one_of, whole_number

HOME = Path(__file__).parent / "studies"
FIGURES = {
    "heatmap": "scores over two axes, early and late in training",
    "violins": "each axis, marginal over the others",
    "curves": "learning curves, one panel per game",
    "aggregate": "mean and median over games, normalised",
}
KEYS = (
    "name",
    "title",
    "figure",
    "games",
    "seeds",
    "steps",
    "preset",
    "window",
    "settings",
    "grid",
    "references",
    "preferred",
    "small",
)
NOT_ON_AN_AXIS = {"seed": "seeds", "steps": "steps", "engine": "--engine"}
COLUMNS = {*FIRST, *THEN, *SCORES} - {
    "agent",
    "risk",
}  # of results.csv, which no axis may be named after


def shipped() -> dict[str, Path]:
    """Return the studies that come with the package, by name."""
    order = ("samples", "architecture", "risk", "atari57")
    return {name: HOME / f"{name}.toml" for name in order}


def read_study(source: str | Path, *, small: bool = False, trust: Trust = ()) -> Study:
    """Read a study that comes with Quantail, or one from a TOML file.

    Args:
        source: The name of a shipped study, such as "samples", or the path of a file.
        small: Whether to read the short version.
        trust: Modules that may be imported where the file names them.
    """
    path = Path(source)
    if path.suffix != ".toml":
        path = shipped()[one_of("study", str(source), shipped(), also="the path of a .toml file")]
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise QuantailError(f"study {path} cannot be read: {error}") from error
    try:
        return _study(content, path.stem, small, origin_of(path, trust))
    except QuantailError as error:
        raise QuantailError(f"study {path.stem}: {error}") from error


def changed(
    study: Study,
    *,
    games: Sequence[str] = (),
    steps: Any = None,
    seeds: int | None = None,
    measures: Sequence[str] = (),
    agents: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> Study:
    """Return a study with other games, another budget, or other values on its axes.

    Args:
        study: The study.
        games: Environments to use instead, by id or name.
        steps: Length of each run in environment steps.
        seeds: Number of seeds for each combination.
        measures: Values for the axis `risk`.
        agents: Values for the axis `agent`.
        settings: Settings of every run.
    """
    budget = {} if steps is None else {"steps": steps}
    own = _settings({**(settings or {}), **budget})
    # Modules named in these arguments are named by the user, and so trusted.
    study = study.trusting(
        modules_of([*games, *measures, *(own.get(name) for name in (*RISKS, *PARTS))])
    )
    for axis in study.grid:
        if name := next((one for one in own if one in _set_by(axis)), None):
            raise QuantailError(
                f"study {study.name}: {name} is set by the axis {axis.name}, not for every run."
            )
    study = dataclasses.replace(study, settings={**study.settings, **own})
    if games:
        chosen = _games([_full(one, study) for one in games], study.origin)
        study = dataclasses.replace(study, games=chosen)
    if seeds is not None:
        study = _with_seeds(study, seeds)
    for name, values, flag in (("risk", measures, "measures"), ("agent", agents, "agents")):
        if values:
            study = _with_values(study, name, values, flag)
    return study


def _study(content: dict[str, Any], stem: str, small: bool, origin: Origin) -> Study:
    for name in content:
        one_of("key", name, KEYS)
    over = _table(content, "small")
    if small:
        if "small" not in content:
            raise QuantailError("it has no small version: --small needs a table [small] in its file.")
        for name in over:
            one_of("[small]", name, KEYS[:-1])
        settings = {**_table(content, "settings"), **_table(over, "settings")}
        content = {**content, **over, "settings": settings}
        content["name"] = f"{content.get('name', stem)}-small" if "name" not in over else over["name"]
    figure = one_of("figure", content.get("figure", "curves"), FIGURES)
    games = content.get("games")
    if not isinstance(games, list) or not games:
        raise QuantailError("games takes a list of environments, such as ['MinAtar/Breakout-v1'].")
    settings = _settings(_table(content, "settings"))
    if "steps" in content:
        settings["steps"] = coerce("steps", content["steps"])
    grid = tuple(_axis(name, values) for name, values in _table(content, "grid").items())
    references = tuple(_variant(name, one) for name, one in _table(content, "references").items())
    if not grid and not references:
        raise QuantailError("the grid is empty: add an axis to [grid], such as kappa = [0.5, 1.0].")
    for one, other in itertools.combinations(grid, 2):
        if both := sorted(_set_by(one) & _set_by(other)):
            raise QuantailError(f"the axes {one.name} and {other.name} both set {both[0]}.")
    if figure == "violins" and not grid:
        raise QuantailError(
            "figure violins takes a grid of one axis or more, but there are only references."
        )
    if figure == "heatmap" and len(grid) != 2:
        raise QuantailError(f"figure heatmap takes a grid of two axes, but this one has {len(grid)}.")
    window = number("window", content.get("window", 0.1), above=0, most=0.5)  # fraction of training
    preferred = {name: value_name(one) for name, one in _table(content, "preferred").items()}
    for name, value in preferred.items():
        axis = next((one for one in grid if one.name == name), None)
        if axis is None or value not in [one.name for one in axis.variants]:
            raise QuantailError(f"preferred names {name} {value}, which is not on the grid.")
    preset = str(content.get("preset", ""))
    if preset:
        # No files, which could change after the study started.
        one_of("preset", preset, registry.parts("preset"))
    return _with_seeds(
        Study(
            name=str(content.get("name", stem)),
            title=str(content.get("title", stem)),
            figure=figure,
            games=_games([str(one) for one in games], origin),
            seeds=1,
            grid=grid,
            references=references,
            settings=settings,
            preset=preset,
            window=window,
            preferred=preferred,
            origin=origin,
        ),
        content.get("seeds", 1),
        all_alike=False,
    )


def _axis(name: str, values: Any) -> Axis:
    """Parse an axis: a list of values of the setting with its name, or a table of named variants."""
    if name in COLUMNS - NOT_ON_AN_AXIS.keys() or (name in COLUMNS and isinstance(values, dict)):
        raise QuantailError(f"an axis cannot be called {name}: results.csv has a column of that name.")
    if isinstance(values, dict):
        variants = tuple(_variant(variant, settings) for variant, settings in values.items())
    elif isinstance(values, list):
        if name in NOT_ON_AN_AXIS:
            raise QuantailError(
                f"{name} cannot be an axis: it is set by {NOT_ON_AN_AXIS[name]} of the study."
            )
        checked = [_value(name, value) for value in values]
        variants = tuple(Variant(value_name(value), {name: value}) for value in checked)
    else:
        raise QuantailError(
            f"axis {name} takes a list of values or a table of variants, not {values!r}."
        )
    if not variants:
        raise QuantailError(f"the grid is empty: axis {name} has no values.")
    names = [one.name for one in variants]
    if twice := next((one for one in names if names.count(one) > 1), None):
        raise QuantailError(f"axis {name} has {twice} twice.")
    return Axis(name, variants)


def _variant(name: str, settings: Any) -> Variant:
    if not isinstance(settings, dict):
        raise QuantailError(f"variant {name} takes settings, such as {{ agent = 'dqn' }}.")
    own = dict(settings)
    seeds = whole_number("seeds", own.pop("seeds"), 1) if "seeds" in own else None
    for setting, key in NOT_ON_AN_AXIS.items():
        if setting in own:
            raise QuantailError(f"variant {name} cannot set {setting}: it is set by {key} of the study.")
    return Variant(name, _settings(own), seeds)


def _settings(values: Mapping[str, Any]) -> dict[str, Any]:
    if "seed" in values:
        raise QuantailError("seed cannot be set: seeds sets the number of seeds, which count from 0.")
    if "engine" in values:
        raise QuantailError(
            "engine cannot be set in a study: its engine trains each run in one process."
        )
    return {name: _value(name, value) for name, value in flattened(values).items()}


def _value(name: str, value: Any) -> Any:
    """Return the checked value of a setting, ready for JSON."""
    found = coerce(name, value)
    if name == "threads" and found < 1:
        raise QuantailError("a study's threads take 1 or more: each run has a fixed share of the cores.")
    return list(found) if isinstance(found, tuple) else found


def _set_by(axis: Axis) -> set[str]:
    """Return every setting that some variant of an axis sets."""
    return {name for one in axis.variants for name in one.settings}


def _table(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = content.get(name, {})
    if not isinstance(found, dict):
        raise QuantailError(f"{name} takes a table [{name}], not {found!r}.")
    return found


def _with_seeds(study: Study, seeds: Any, all_alike: bool = True) -> Study:
    """Return the study with this number of seeds; `all_alike` overrides the numbers of variants."""
    count = whole_number("seeds", seeds, 1)
    if not all_alike:
        return dataclasses.replace(study, seeds=count)

    def alike(variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
        return tuple(dataclasses.replace(one, seeds=None) for one in variants)

    grid = tuple(Axis(axis.name, alike(axis.variants)) for axis in study.grid)
    return dataclasses.replace(study, seeds=count, grid=grid, references=alike(study.references))


def _with_values(study: Study, name: str, values: Sequence[str], flag: str) -> Study:
    """Return the study with other values on one axis: known variants by name, or setting values."""
    axis = next((one for one in study.grid if one.name == name), None)
    if axis is None:
        axes = ", ".join(one.name for one in study.grid)
        raise QuantailError(f"--{flag} needs an axis {name}, but study {study.name} has {axes}.")
    known = {one.name: one for one in axis.variants}
    chosen = tuple(known.get(value, Variant(value, {name: value})) for value in dict.fromkeys(values))
    grid = tuple(Axis(name, chosen) if one is axis else one for one in study.grid)
    return dataclasses.replace(study, grid=grid)


def _games(games: Sequence[str], origin: Origin | None) -> tuple[str, ...]:
    for game in games:
        if origin is not None:
            require_trusted_env(game, origin)
        find_family(game)  # raises an error for an unknown id
    if twice := next((one for one in games if list(games).count(one) > 1), None):
        raise QuantailError(f"games has {twice} twice.")
    return tuple(games)


def _full(game: str, study: Study) -> str:
    """Return the id of a game; a bare name gets the family and version of the study's first game."""
    if "/" in game or ":" in game or game in gym.registry:
        return game
    family, slash, first = study.games[0].rpartition("/")
    return f"{family}{slash}{game}-{first.rpartition('-')[2]}"
