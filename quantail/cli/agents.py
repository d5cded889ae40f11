"""quantail agents"""

from quantail.cli.listing import print_table
from quantail.cli.parser import Parser
from quantail.recipes import AGENTS


def run(words: list[str]) -> int:
    Parser(prog="quantail agents", description="The agents there are.").parse(words)
    rows = [(name, recipe.summary, recipe.paper) for name, recipe in AGENTS.items()]
    print_table(("agent", "what it is", "paper"), rows)
    return 0
