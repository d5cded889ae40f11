"""quantail watch RUN [RUN2 ...]"""

from quantail.cli.parser import Parser, add_trust
from quantail.validation import whole_number
from quantail.viewing.live import watch


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail watch",
        description="Watch the agent of a run in the browser: the environment, the return distribution "
        "of every action, and controls that change the risk measure while the agent plays. Several runs "
        "of one environment can be shown side by side on the same seed. This works offline, and while a "
        "run is still training.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folder of a run; several to compare")
    parser.add_argument("--seed", default="1", metavar="S", help="seed of the first episode [1]")
    parser.add_argument("--port", metavar="P", help="port to listen on [8750, or the next free one]")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="H",
        help="address to listen on [127.0.0.1: this machine only]",
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address without opening a browser"
    )
    add_trust(parser)
    arguments = parser.parse(words)
    seed = whole_number("seed", arguments.seed, 0)
    port = None if arguments.port is None else whole_number("port", arguments.port, 1, 65535)
    watch(
        arguments.runs,
        host=arguments.host,
        port=port,
        seed=seed,
        browser=not arguments.no_browser,
        trust=arguments.trust,
    )
    return 0
