"""quantail agents [NAME ...]"""

from quantail.cli.listing import print_table
from quantail.cli.parser import Parser
from quantail.recipes import AGENTS, PRESETS, compose, sources
from quantail.settings import ABOUT, Settings, shown


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
        help=f"preset for the settings: {', '.join(PRESETS)} or a .toml file "
        "[atari-paper, the published settings]",
    )
    arguments = parser.parse(words)
    agents = {
        name: compose(arguments.preset, {"agent": name}) for name in dict.fromkeys(arguments.names)
    }
    if arguments.preset not in PRESETS and agents:
        print(
            f"{arguments.preset} applied to the defaults; training applies it to the preset for ENV.\n"
        )
    if not agents:
        rows = [(name, recipe.summary, recipe.paper) for name, recipe in AGENTS.items()]
        print_table(("agent", "description", "paper"), rows)
    elif len(agents) == 1:
        _show(next(iter(agents)), arguments.preset)
    else:
        _compare(agents)
    return 0


def _show(name: str, preset: str) -> None:
    settings, origins = compose(preset, {"agent": name}), sources(preset, {"agent": name})
    print(f"{name}: {AGENTS[name].summary}\n{AGENTS[name].paper}\n")
    rows = [
        (setting, shown(getattr(settings, setting)), about.unit, origins.get(setting, about.source))
        for setting, about in ABOUT.items()
        if about.group in ("network", "learning", "replay", "acting") and settings.is_active(setting)
    ]
    print_table(("setting", f"with {preset}", "unit", "source"), rows)


def _compare(agents: dict[str, Settings]) -> None:
    rows = []
    for setting in ABOUT:
        cells = [
            shown(getattr(settings, setting)) if settings.is_active(setting) else "–"
            for settings in agents.values()
        ]
        if setting != "agent" and len(set(cells)) > 1:
            rows.append((setting, *cells))
    print_table(("setting", *agents), rows)
