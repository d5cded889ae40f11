"""quantail scores [RUN|CSV ...]"""

from pathlib import Path

from quantail.cli.parser import Parser
from quantail.cli.tables import print_table
from quantail.errors import QuantailError
from quantail.evaluation.paper_tables import paper_tables
from quantail.evaluation.protocols import PROTOCOLS
from quantail.evaluation.result_tables import (
    Scores,
    aggregates_table,
    normalised_table,
    raw_table,
    results_table,
    with_paper,
)
from quantail.evaluation.results import UNKNOWN, by_agent, require_one_protocol, results_csv
from quantail.files import require_writable, write_text
from quantail.runs.select_results import collect_results

LISTED = 30  # maximum number of results that are listed individually


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail scores",
        description="Print human-normalised scores, (agent - random) / (human - random), of each game "
        "and aggregated over games: median, interquartile mean (IQM), human gap, optimality gap and "
        "mean, with bootstrap intervals over seeds. The score of a run is a result saved by "
        "`quantail eval`: that of the best checkpoint, then the longest, then the newest. Runs that "
        "differ only in their seed count as one agent. A CSV needs the columns game and score; agent, "
        "seed and protocol are optional.",
    )
    parser.add_argument(
        "sources", nargs="*", metavar="RUN|CSV", help="folders of runs, or CSV files of scores"
    )
    parser.add_argument(
        "--protocol", metavar="NAME", help="use only results under this protocol, by name or hash"
    )
    parser.add_argument(
        "--starts", metavar="FILE|SUM", help="use only results from this recording, by file or checksum"
    )
    parser.add_argument(
        "--published",
        action="store_true",
        help="add the paper's scores; without sources, check the paper's tables against its scores",
    )
    parser.add_argument("--csv", metavar="FILE", help="also write the scores as a tidy table")
    arguments = parser.parse(words)
    if not arguments.sources:
        if not arguments.published:
            raise QuantailError("scores needs runs, CSV tables, or --published.")
        for flag in ("csv", "protocol", "starts"):
            if getattr(arguments, flag):
                raise QuantailError(f"--{flag} needs runs or tables.")
        for table in paper_tables():
            print_table(table)
        return 0
    if arguments.csv:
        require_writable(Path(arguments.csv))
    results = collect_results(arguments.sources, arguments.protocol, arguments.starts)
    protocol = require_one_protocol(results)
    human_starts = results[0].human_starts
    agents: Scores = by_agent(results)
    if arguments.published:
        if results[0].conditions not in (PROTOCOLS["no-op"].hash, UNKNOWN):
            raise QuantailError(
                f"the paper's scores are under {PROTOCOLS['no-op'].label}, these under {protocol}: "
                "evaluate with --protocol no-op to compare them."
            )
        agents = with_paper(agents)
    print(f"protocol {protocol}")
    if len(results) <= LISTED:
        print_table(results_table(results))
    print_table(raw_table(agents, human_starts))
    print_table(normalised_table(agents, human_starts))
    print_table(aggregates_table(agents, human_starts))
    if arguments.csv:
        write_text(Path(arguments.csv), results_csv(results))
        print(f"written to {arguments.csv}")
    return 0
