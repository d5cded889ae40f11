"""quantail agents [NAME ...]"""

from quantail.cli.listing import print_table
from quantail.cli.parser import Parser
from quantail.recipes import AGENTS, PRESETS, compose, sources
from quantail.settings import ABOUT, Settings, shown


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail agents",
        description="The agents there are; with one name, its settings and their sources; "
        "with several, their settings side by side where they differ.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="agents to show or compare")
    parser.add_argument(
        "--preset",
        default="atari-paper",
        metavar="NAME",
        help=f"as they are with {', '.join(PRESETS)} or a .toml file [atari-paper: as published]",
    )
    arguments = parser.parse(words)
    agents = {
        name: compose(arguments.preset, {"agent": name}) for name in dict.fromkeys(arguments.names)
    }
    if arguments.preset not in PRESETS and agents:
        print(
            f"{arguments.preset} over the defaults; in training it lies over the preset that fits ENV.\n"
        )
    if not agents:
        rows = [(name, recipe.summary, recipe.paper) for name, recipe in AGENTS.items()]
        print_table(("agent", "what it is", "paper"), rows)
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
        if about.group in ("network", "learning", "replay", "acting") and settings.counts(setting)
    ]
    print_table(("setting", f"with {preset}", "unit", "source"), rows)


def _compare(agents: dict[str, Settings]) -> None:
    rows = []
    for setting in ABOUT:
        cells = [
            shown(getattr(settings, setting)) if settings.counts(setting) else "–"
            for settings in agents.values()
        ]
        if setting != "agent" and len(set(cells)) > 1:
            rows.append((setting, *cells))
    print_table(("setting", *agents), rows)
