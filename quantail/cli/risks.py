"""quantail risks"""

from quantail.cli.listing import print_table
from quantail.cli.parser import Parser
from quantail.registry import parts
from quantail.risk import form_of


def run(words: list[str]) -> int:
    Parser(
        prog="quantail risks",
        description="List the risk measures for --risk in train, eval and other commands.",
    ).parse(words)
    rows = [
        (form_of(name, measure), measure.takes or "–", measure.summary)
        for name, measure in parts("risk").items()
    ]
    rows.append(
        ("utility:module:function", "–", "expected utility with your own function of the return")
    )
    rows.append(("module:Class:η", "–", "your own measure, a subclass of quantail.risk.RiskMeasure"))
    rows.append(("module:function", "–", "your own distortion of τ, a function from [0, 1] to [0, 1]"))
    print_table(("risk", "takes", "description"), rows)
    return 0
