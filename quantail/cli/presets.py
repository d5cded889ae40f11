"""quantail presets [NAME]"""

from quantail.cli.listing import print_table
from quantail.cli.parser import Parser
from quantail.recipes import PRESETS, compose, sources
from quantail.settings import to_toml


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail presets",
        description="The presets there are; with a name, all settings of it as TOML. "
        "Write them to a file, change it, and train with --preset FILE.toml. "
        "A file need only name what it changes: the rest is the preset that fits ENV.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a preset")
    parser.add_argument("--agent", metavar="NAME", help="as this agent uses it [iqn, or the file's own]")
    arguments = parser.parse(words)
    name, changes = arguments.name, {"agent": arguments.agent} if arguments.agent else {}
    if name is None:
        rows = [(preset, about.summary) for preset, about in PRESETS.items()]
        print_table(("preset", "for"), rows)
    else:
        settings = compose(name, changes)
        title = f"preset {name}, agent {settings.agent}"
        print(to_toml(settings, title, sources(name, changes)), end="")
    return 0
