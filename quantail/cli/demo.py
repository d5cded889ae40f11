"""quantail demo [NAME]"""

from quantail.cli.parser import Parser
from quantail.cli.watch import add_address, address_of
from quantail.demo import DEMOS, offers
from quantail.extras import require_extra
from quantail.validation import one_of
from quantail.viewing.live.serve import serve

SEED = 3  # with which no walker falls at once


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail demo",
        description="Watch agents that come with Quantail, without training anything: two walkers at "
        "the windy cliff, one of which avoids risk, and MinAtar Breakout. The page shows the return "
        "distribution of every action while they play, and you can change the risk measure. It is the "
        "page of `quantail watch`, works offline, and lets you choose between the two.",
    )
    parser.add_argument(
        "name",
        nargs="?",
        default="cliff",
        metavar="NAME",
        help=f"what to show first: {' or '.join(DEMOS)} [cliff]",
    )
    add_address(parser, SEED)
    arguments = parser.parse(words)
    name = one_of("demo", arguments.name, DEMOS)
    where = address_of(arguments)
    require_extra("web", "quantail demo")
    if extra := DEMOS[name].extra:
        require_extra(extra, f"quantail demo {name}")
    first = list(DEMOS).index(name)
    serve(offers(), "the demo is", "quantail demo", first=first, **where)
    return 0
