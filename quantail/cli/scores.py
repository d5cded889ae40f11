"""quantail scores [RUN|CSV ...]"""

from pathlib import Path

from quantail.cli.parser import Parser
from quantail.cli.sheets import print_sheet
from quantail.errors import QuantailError
from quantail.evaluation.protocols import PROTOCOLS
from quantail.evaluation.results import UNKNOWN, by_agent, require_one_protocol, results_csv
from quantail.evaluation.sheets import (
    Scores,
    aggregates_sheet,
    normalised_sheet,
    paper_sheets,
    raw_sheet,
    results_sheet,
    with_paper,
)
from quantail.files import require_writable, write_text
from quantail.training.chosen_results import gather_results

LISTED = 30  # results that are told one by one


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail scores",
        description="Human-normalised scores, (agent - random) / (human - random), for each game and "
        "over games: median, interquartile mean, human gap, optimality gap and mean, with bootstrap "
        "intervals over seeds. A run counts by what `quantail eval` kept in it: the best checkpoint's "
        "result, the longest, the newest. Runs that differ by their seed alone are one agent. A CSV has "
        "the columns game and score, and perhaps agent, seed and protocol.",
    )
    parser.add_argument("sources", nargs="*", metavar="RUN|CSV", help="runs, or tables of scores")
    parser.add_argument(
        "--protocol", metavar="NAME", help="the results under this protocol alone: its name or hash"
    )
    parser.add_argument(
        "--starts", metavar="FILE|SUM", help="the results from this recording alone, or its checksum"
    )
    parser.add_argument(
        "--published",
        action="store_true",
        help="put the paper's scores beside them; alone: check the paper's tables against its scores",
    )
    parser.add_argument("--csv", metavar="FILE", help="write the scores as a tidy table too")
    arguments = parser.parse(words)
    if not arguments.sources:
        if not arguments.published:
            raise QuantailError("scores takes runs, CSV tables, or --published.")
        for flag in ("csv", "protocol", "starts"):
            if getattr(arguments, flag):
                raise QuantailError(f"--{flag} takes runs or tables to choose from or to write.")
        for sheet in paper_sheets():
            print_sheet(sheet)
        return 0
    if arguments.csv:
        require_writable(Path(arguments.csv))
    results = gather_results(arguments.sources, arguments.protocol, arguments.starts)
    protocol = require_one_protocol(results)
    human_starts = results[0].human_starts
    agents: Scores = by_agent(results)
    if arguments.published:
        if results[0].conditions not in (PROTOCOLS["no-op"].hash, UNKNOWN):
            raise QuantailError(
                f"the paper's scores are under {PROTOCOLS['no-op'].label}, and these under {protocol}: "
                "evaluate with --protocol no-op to put them side by side."
            )
        agents = with_paper(agents)
    print(f"protocol {protocol}")
    if len(results) <= LISTED:
        print_sheet(results_sheet(results))
    print_sheet(raw_sheet(agents, human_starts))
    print_sheet(normalised_sheet(agents, human_starts))
    print_sheet(aggregates_sheet(agents, human_starts))
    if arguments.csv:
        write_text(Path(arguments.csv), results_csv(results))
        print(f"written to {arguments.csv}")
    return 0
