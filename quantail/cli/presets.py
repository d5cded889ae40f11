"""quantail presets [NAME]"""

from quantail.cli.listing import print_table
from quantail.cli.parser import Parser, add_trust
from quantail.config.toml import to_toml
from quantail.recipes import composition
from quantail.registry import parts
from quantail.trust import origin_of


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail presets",
        description="List the presets. With a name, print all settings of that preset as TOML: save "
        "them to a file, edit it, and train with --preset FILE.toml. A file only needs the settings "
        "that it changes; the others come from the preset for ENV.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="preset to print")
    parser.add_argument(
        "--agent",
        metavar="NAME",
        help="print the settings for this agent [iqn, or the agent in the file]",
    )
    add_trust(parser, "the .toml file")
    arguments = parser.parse(words)
    name, changes = arguments.name, {"agent": arguments.agent} if arguments.agent else {}
    if name is None:
        rows = [(preset, about.summary) for preset, about in parts("preset").items()]
        print_table(("preset", "for"), rows)
    else:
        composed = composition(name, changes, origin=origin_of(name, arguments.trust))
        title = f"preset {name}, agent {composed.config.run.agent}"
        print(to_toml(composed.config, title, composed.sources), end="")
    return 0
