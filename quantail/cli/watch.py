"""quantail watch RUN [RUN2 ...]"""

import argparse
from typing import Any

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
    add_address(parser)
    add_trust(parser)
    arguments = parser.parse(words)
    watch(arguments.runs, **address_of(arguments), trust=arguments.trust)
    return 0


def add_address(parser: Parser, seed: int = 1) -> None:
    """Add the seed, and where and how the page is served."""
    parser.add_argument(
        "--seed", default=str(seed), metavar="S", help=f"seed of the first episode [{seed}]"
    )
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


def address_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the values of these arguments, as `watch` takes them."""
    port = arguments.port
    return {
        "host": arguments.host,
        "port": None if port is None else whole_number("port", port, 1, 65535),
        "seed": whole_number("seed", arguments.seed, 0),
        "browser": not arguments.no_browser,
    }
