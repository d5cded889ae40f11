"""quantail report RUN ..."""

from quantail.cli.parser import Parser, add_trust
from quantail.viewing.report import write_report


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail report",
        description="Write one self-contained HTML page about runs: learning curves with intervals "
        "over seeds, scores, returns of single episodes, what the agents expect at moments of a game, "
        "where time went, settings, protocol, versions and machine. The figures lie beside it as PNG "
        "and SVG, the numbers as CSV. Runs that differ by their seed alone are drawn as one curve.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs")
    parser.add_argument("--out", metavar="DIR", help="where [RUN/report, or report for several]")
    parser.add_argument("--protocol", metavar="NAME", help="that of the scores, where there are several")
    parser.add_argument(
        "--starts", metavar="FILE|SUM", help="the recording of human starts, or its checksum"
    )
    parser.add_argument(
        "--no-eval", action="store_true", help="do not evaluate afresh the runs without a result"
    )
    add_trust(parser)
    arguments = parser.parse(words)
    page = write_report(
        arguments.runs,
        arguments.out,
        protocol=arguments.protocol,
        starts=arguments.starts,
        evaluate_missing=not arguments.no_eval,
        say=print,
        trust=arguments.trust,
    )
    print(f"written to {page}")
    return 0
