"""Configurations as TOML files: what `quantail presets NAME` prints and `--preset FILE` reads."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quantail.config.flat import DEFAULT_PARTS, FAMILY, coerce, flat_settings, flattened
from quantail.errors import QuantailError
from quantail.files import check_schema

if TYPE_CHECKING:
    from quantail.config.config import Config

SCHEMA = 1
UNWRITTEN = ("preset",)  # the file itself is the preset of a run that is made from it


def to_toml(config: "Config", title: str, sources: Mapping[str, str]) -> str:
    """Return the active settings as a commented TOML file, which `--preset FILE` reads back."""
    lines, group = [f"# {title}", f"schema = {SCHEMA}"], ""
    known, values = flat_settings(), config.to_dict()
    own = [name for name in values if "." in name]  # of parts from outside, which are tables
    tables = {name.partition(".")[0] for name in own}
    for name in values:
        if name not in known or name in (*tables, *UNWRITTEN) or not config.is_active(name):
            continue
        if known[name].group != group:
            group = known[name].group
            lines += ["", f"# {group}"]
            named = FAMILY in tables or values[FAMILY] == DEFAULT_PARTS[FAMILY]
            if group == "environment" and not named:
                lines.append(_line(FAMILY, config, sources))
        lines.append(_line(name, config, sources))
    for kind in sorted(tables):
        lines += ["", f"[{kind}]", f"name = {_toml_value(values[kind])}"]
        lines += [_line(name, config, sources) for name in own if name.partition(".")[0] == kind]
    return "\n".join(lines) + "\n"


def _line(name: str, config: "Config", sources: Mapping[str, str]) -> str:
    """Return the line of one setting: its value, its help, its unit and its source."""
    line = f"{name.rpartition('.')[2]} = {_toml_value(config.to_dict()[name])}"
    about, note = config.about(name), unit_and_source(config, name, sources)
    words = [*about.help.split(), f"({note})" if note else ""]  # a help text may have lines
    comment = " ".join(filter(None, words))
    return f"{line}  # {comment}" if comment else line


def unit_and_source(config: "Config", name: str, sources: Mapping[str, str]) -> str:
    """Return the unit of a setting and the source of its value."""
    about = config.about(name)
    return "; ".join(filter(None, (about.unit, sources.get(name, about.source))))


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(str(v) for v in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # the escapes of TOML are the same
    return repr(value)


def toml_path(path: str | Path) -> Path:
    """Return the path of a configuration; raise an error unless `--preset` would read it as a file."""
    if Path(path).suffix != ".toml":
        raise QuantailError(f"the file of a configuration takes a name that ends in .toml, not {path}.")
    return Path(path)


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Name the file that settings come from in errors about them."""
    try:
        yield
    except QuantailError as error:
        raise QuantailError(
            str(error) if str(path) in str(error) else f"preset {path}: {error}"
        ) from error


def read_toml(path: Path) -> dict[str, Any]:
    """Read the settings from a TOML file, by their flat names."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise QuantailError(f"preset {path} cannot be read: {error}") from error
    if "schema" in values:
        check_schema(path, {"schema": values.pop("schema")}, SCHEMA)
    for name, value in values.items():
        if isinstance(value, dict) and name not in DEFAULT_PARTS:
            raise QuantailError(
                f"preset {path}: put settings at the top level, not in a table [{name}]; "
                f"tables are for the settings of parts ({', '.join(DEFAULT_PARTS)})."
            )
    with naming(path):
        return {name: coerce(name, value) for name, value in flattened(values).items()}
