"""quantail agents [NAME ...]"""

from quantail.cli.listing import print_table
from quantail.cli.parser import Parser
from quantail.fields import about_of, shown
from quantail.parts import dotted_fields
from quantail.recipes import compose, sources
from quantail.registry import find, is_known, label, parts
from quantail.settings import ABOUT, PARTS, Settings


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail agents",
        description="List the available agents. With one name, show its settings and their sources. "
        "With several names, compare the settings in which they differ.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="agents to show or compare")
    parser.add_argument(
        "--preset",
        default="atari-paper",
        metavar="NAME",
        help=f"preset for the settings: {', '.join(parts('preset'))} or a .toml file "
        "[atari-paper, the published settings]",
    )
    arguments = parser.parse(words)
    agents = {
        name: compose(arguments.preset, {"agent": name}) for name in dict.fromkeys(arguments.names)
    }
    if agents and not is_known("preset", arguments.preset):
        print(
            f"{arguments.preset} applied to the defaults; training applies it to the preset for ENV.\n"
        )
    if not agents:
        rows = [(name, recipe.summary, recipe.paper) for name, recipe in parts("agent").items()]
        print_table(("agent", "description", "paper"), rows)
    elif len(agents) == 1:
        _show(next(iter(agents)), arguments.preset)
    else:
        _compare(agents)
    return 0


def _show(name: str, preset: str) -> None:
    settings, origins = compose(preset, {"agent": name}), sources(preset, {"agent": name})
    recipe = find("agent", name)
    print(f"{name}: {recipe.summary or 'an agent of your own'}\n{recipe.paper}\n")
    rows = [
        (setting, _cell(settings, setting), about.unit, origins.get(setting, about.source))
        for setting, about in ABOUT.items()
        if about.group in ("network", "learning", "replay", "acting") and settings.is_active(setting)
    ]
    for setting, field in dotted_fields(settings).items():
        about = about_of(field)
        source = origins.get(setting, about.source)
        rows.append((setting, _cell(settings, setting), about.unit, source))
    print_table(("setting", f"with {preset}", "unit", "source"), rows)


def _compare(agents: dict[str, Settings]) -> None:
    rows = []
    dotted = dict.fromkeys(name for settings in agents.values() for name in settings.dotted)
    for setting in (*ABOUT, *dotted):
        cells = [_cell(settings, setting) for settings in agents.values()]
        if setting != "agent" and len(set(cells)) > 1:
            rows.append((setting, *cells))
    print_table(("setting", *agents), rows)


def _cell(settings: Settings, name: str) -> str:
    """Return the value of a setting for a table, or a dash where it has no effect."""
    if name in PARTS:
        return label(name, getattr(settings, name))
    if name not in ABOUT:
        return shown(settings.dotted[name]) if name in settings.dotted else "–"
    return shown(getattr(settings, name)) if settings.is_active(name) else "–"
