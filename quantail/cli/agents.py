"""quantail agents [NAME ...]"""

from quantail.cli.listing import print_table
from quantail.cli.parser import Parser, add_trust
from quantail.config import PARTS, Config, flat_settings
from quantail.recipes import Composition, composition
from quantail.registry import find, is_known, label, parts
from quantail.settings import shown
from quantail.trust import origin_of

SHOWN = ("network", "head", "learner", "replay", "exploration")  # groups that make an agent


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
    add_trust(parser, "the .toml file")
    arguments = parser.parse(words)
    origin = origin_of(arguments.preset, arguments.trust)
    agents = {
        name: composition(arguments.preset, {"agent": name}, origin=origin)
        for name in dict.fromkeys(arguments.names)
    }
    if agents and not is_known("preset", arguments.preset):
        print(
            f"{arguments.preset} applied to the defaults; training applies it to the preset for ENV.\n"
        )
    if not agents:
        rows = [(name, recipe.summary, recipe.paper) for name, recipe in parts("agent").items()]
        print_table(("agent", "description", "paper"), rows)
    elif len(agents) == 1:
        _show(*agents.values())
    else:
        _compare({name: one.config for name, one in agents.items()})
    return 0


def _show(composed: Composition) -> None:
    config, preset = composed.config, composed.config.run.preset
    recipe, known = find("agent", config.run.agent), flat_settings()
    print(f"{config.run.agent}: {recipe.summary or 'an agent of your own'}\n{recipe.paper}\n")
    rows = []
    for name in config.to_dict():
        own = "." in name
        if own or (name in known and known[name].group in SHOWN and config.is_active(name)):
            about = config.about(name)
            source = composed.sources.get(name, about.source)
            rows.append((name, _cell(config, name), about.unit, source))
    print_table(("setting", f"with {preset}", "unit", "source"), rows)


def _compare(agents: dict[str, Config]) -> None:
    rows = []
    dotted = [name for one in agents.values() for name in one.to_dict() if "." in name]
    for name in dict.fromkeys((*flat_settings(), *dotted)):
        cells = [_cell(config, name) for config in agents.values()]
        if name != "agent" and len(set(cells)) > 1:
            rows.append((name, *cells))
    print_table(("setting", *agents), rows)


def _cell(config: Config, name: str) -> str:
    """Return the value of a setting for a table, or a dash where it has no effect."""
    if not config.is_active(name):
        return "–"
    value = config.to_dict()[name]
    return label(name, value) if name in PARTS else shown(value)
