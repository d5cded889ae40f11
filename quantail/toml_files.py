"""Settings as TOML files: what `quantail presets NAME` prints and `--preset FILE` reads."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError
from quantail.fields import about_of
from quantail.parts import dotted_fields
from quantail.settings import ABOUT, PARTS, Settings, coerce, flattened, unit_and_source


def to_toml(settings: Settings, title: str, sources: Mapping[str, str]) -> str:
    """Return the active settings as a commented TOML file, which `--preset FILE` reads back."""
    lines, group = [f"# {title}"], ""
    tables = {name.partition(".")[0] for name in settings.dotted}  # parts with settings of their own
    for name, about in ABOUT.items():
        if not settings.is_active(name) or name in tables:
            continue
        if about.group != group:
            group = about.group
            lines += ["", f"# {group}"]
        note = unit_and_source(name, sources)
        lines.append(f"{name} = {_toml_value(getattr(settings, name))}  # {about.help} ({note})")
    own = dotted_fields(settings)
    for kind in sorted(tables):
        lines += ["", f"[{kind}]", f"name = {_toml_value(getattr(settings, kind))}"]
        for name, value in settings.dotted.items():
            if name.partition(".")[0] != kind:
                continue
            about = about_of(own[name])
            note = "; ".join(filter(None, (about.unit, sources.get(name, about.source))))
            words = [*about.help.split(), f"({note})" if note else ""]  # a help text may have lines
            comment = " ".join(filter(None, words))
            line = f"{name.partition('.')[2]} = {_toml_value(value)}"
            lines.append(f"{line}  # {comment}" if comment else line)
    return "\n".join(lines) + "\n"


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(str(v) for v in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # the escapes of TOML are the same
    return repr(value)


def read_toml(path: Path) -> dict[str, Any]:
    """Read the settings from a TOML file."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise QuantailError(f"preset {path} cannot be read: {error}") from error
    for name, value in values.items():
        if isinstance(value, dict) and name not in PARTS:
            raise QuantailError(
                f"preset {path}: put settings at the top level, not in a table [{name}]; "
                f"tables are for the settings of parts ({', '.join(PARTS)})."
            )
    return {name: coerce(name, value) for name, value in flattened(values).items()}
