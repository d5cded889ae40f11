"""quantail report RUN ..."""

from quantail.cli.parser import Parser, add_trust
from quantail.viewing.report import write_report


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail report",
        description="Write a self-contained HTML report on runs: learning curves with intervals over "
        "seeds, scores, episode returns, predicted return distributions at states of an episode, time "
        "spent, settings, protocol, versions and machine. The figures are also saved as PNG and SVG, "
        "the numbers as CSV. Runs that differ only in their seed share one curve.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs")
    parser.add_argument(
        "--out", metavar="DIR", help="output folder [RUN/report, or report for several runs]"
    )
    parser.add_argument(
        "--protocol", metavar="NAME", help="protocol of the scores, if there are several"
    )
    parser.add_argument(
        "--starts", metavar="FILE|SUM", help="recording of the human starts, or its checksum"
    )
    parser.add_argument(
        "--no-eval", action="store_true", help="do not evaluate runs that have no saved result"
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
