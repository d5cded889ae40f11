"""The tables of settings, from the documentation that every setting has in the code."""

import math

from quantail.config import flat_settings, only_with
from quantail.config.flat import Flat
from quantail.recipes import AGENTS, PRESETS, Composition, composition
from quantail.registry import label, parts
from quantail.settings import shown
from tools.docs.tables import code, plain, table

TITLES = {
    "run": "The run",
    "risk": "Risk",
    "environment": "Environment",
    "network": "Network",
    "head": "Return head",
    "learner": "Learning",
    "replay": "Replay buffer",
    "exploration": "Exploration",
    "evaluation": "Evaluation",
}
COLUMNS = ("Setting", "What it is, and what it takes", "Default", "On presets")
UNSHOWN = ("preset",)  # it chooses the values of the others


def page() -> str:
    """Return all settings, a table for each group."""
    known = flat_settings()
    groups = {
        flat.group: [name for name in known if known[name].group == flat.group]
        for flat in known.values()
    }
    composed = {
        (preset, agent): composition(preset, {"agent": agent}) for preset in PRESETS for agent in AGENTS
    }
    text = []
    for group, names in groups.items():
        rows = [_row(name, known[name], composed) for name in names if name not in UNSHOWN]
        text += [f"## {TITLES.get(group, group.capitalize())}", table(COLUMNS, rows)]
    return "\n\n".join([_presets(), *text])


def _presets() -> str:
    rows = [(code(name), plain(preset.summary)) for name, preset in PRESETS.items()]
    return "\n\n".join(
        (
            "## Presets",
            "A preset has settings for a kind of environment. The environment decides which one is "
            "used; `--preset` chooses another one, or a TOML file.",
            table(("Preset", "For"), rows),
        )
    )


def _row(name: str, flat: Flat, composed: dict[tuple[str, str], Composition]) -> tuple[str, ...]:
    about = flat.about
    condition = only_with(name)
    what = plain(about.help + (f"; {condition}" if condition else ""))
    default = code(_value(name, flat.default)) if _value(name, flat.default) else "empty"
    if about.source:
        default += f"\n{plain(about.source)}"
    return (
        f'<a id="{name}"></a>{code(name)}',
        f"{what}\n*{plain(_takes(name, flat))}*",
        default,
        _on_presets(name, flat, composed),
    )


def _value(name: str, value: object) -> str:
    text = (
        label(name, value)
        if isinstance(value, str) and flat_settings()[name].about.kind
        else shown(value)
    )
    return str(text)


def _takes(name: str, flat: Flat) -> str:
    """Return the values that a setting takes, with their unit."""
    about = flat.about
    if name == "agent":
        return "a name: " + ", ".join(AGENTS)
    if about.choices:
        return "one of " + ", ".join(about.choices)
    if about.kind:
        return "a name: " + ", ".join(parts(about.kind)) + "; or module:Class"
    kind = {bool: "yes or no", int: "whole number", float: "number", tuple: "whole numbers", str: "text"}
    takes = kind[type(flat.default)]
    if about.unit:
        takes += f" of {about.unit}"
    least, most = about.least, about.most
    if math.isfinite(least) and math.isfinite(most):
        return f"{takes}, {least:g} to {most:g}"
    if math.isfinite(least):
        return f"{takes}, at least {least:g}"
    return f"{takes}, at most {most:g}" if math.isfinite(most) else takes


def _on_presets(name: str, flat: Flat, composed: dict[tuple[str, str], Composition]) -> str:
    """Return the values on presets that differ from the default, with the agents that have them."""
    if name == "agent":
        return ""
    agent = next((one for one in ("iqn", *AGENTS) if _has(composed["atari-paper", one], name)), "iqn")
    lines = {}
    for preset in PRESETS:
        found = composed[preset, agent]
        value = found.config.to_dict().get(name, flat.default)
        if shown(value) != shown(flat.default) and name in found.sources:
            what = f"{code(_value(name, value))}, {plain(found.sources[name])}"
            lines.setdefault(what, []).append(preset)
    text = [f"{', '.join(map(code, presets))}: {what}" for what, presets in lines.items()]
    if text and agent != "iqn":
        text.append(f"(with the agent {code(agent)})")
    return "\n".join(text)


def _has(composed: Composition, name: str) -> bool:
    return name in composed.config.to_dict() and composed.config.is_active(name)
