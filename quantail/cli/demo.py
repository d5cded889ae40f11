"""quantail demo [NAME]"""

from quantail.cli.parser import Parser
from quantail.cli.watch import add_address, address_of
from quantail.demo import DEMOS, folder
from quantail.extras import require_extra
from quantail.validation import one_of


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail demo",
        description="Watch agents that come with Quantail, without training anything: two walkers at the "
        "windy cliff, one of which avoids risk, and MinAtar Breakout. The page shows the return "
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
    add_address(parser)
    arguments = parser.parse(words)
    name = one_of("demo", arguments.name, DEMOS)
    where = address_of(arguments)
    require_extra("web", "quantail demo")
    if extra := DEMOS[name].extra:
        require_extra(extra, f"quantail demo {name}")
    from quantail.viewing.live.registry import Offer
    from quantail.viewing.live.serve import serve

    offers = [
        Offer([folder(key)], title=one.title, note=one.note, risks=one.risks, speed=one.speed)
        for key, one in DEMOS.items()
    ]
    serve(offers, "the demo is", "quantail demo", first=list(DEMOS).index(name), **where)
    return 0
