"""quantail risks"""

from quantail.cli.listing import print_table
from quantail.cli.parser import Parser
from quantail.risk import MEASURES


def run(words: list[str]) -> int:
    Parser(
        prog="quantail risks",
        description="List the risk measures for --risk in train, eval and other commands.",
    ).parse(words)
    rows = [
        (f"{name}:η" if measure.takes else name, measure.takes or "–", measure.summary)
        for name, measure in MEASURES.items()
    ]
    rows.append(
        ("utility:module:function", "–", "expected utility with your own function of the return")
    )
    rows.append(("module:function", "–", "your own distortion of τ, a function from [0, 1] to [0, 1]"))
    print_table(("risk", "range of η", "description"), rows)
    return 0
