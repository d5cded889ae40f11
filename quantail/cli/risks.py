"""quantail risks"""

from quantail.cli.listing import print_table
from quantail.cli.parser import Parser
from quantail.risk import MEASURES


def run(words: list[str]) -> int:
    Parser(
        prog="quantail risks",
        description="The risk measures there are, for --risk in train and eval.",
    ).parse(words)
    rows = [
        (f"{name}:η" if measure.takes else name, measure.takes or "–", measure.summary)
        for name, measure in MEASURES.items()
    ]
    rows.append(("module:function", "–", "your own map of τ from [0, 1] to [0, 1]"))
    print_table(("risk", "η takes", "what it values"), rows)
    return 0
