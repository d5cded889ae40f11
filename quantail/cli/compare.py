"""quantail compare RUN --with published"""

from pathlib import Path

from quantail.cli.parser import Parser
from quantail.cli.tables import print_table
from quantail.extras import require_extra
from quantail.viewing.comparison import compare
from quantail.viewing.style import save_figure, styled


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail compare",
        description="Compare the learning curve of a run with the published curves of its game, or with "
        "other runs, at the same numbers of frames. The protocol of each source is listed below the "
        "table; scores under different protocols are not directly comparable.",
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--with",
        dest="others",
        nargs="+",
        default=["published"],
        metavar="published|RUN",
        help="what to compare with [published]",
    )
    parser.add_argument("--out", metavar="STEM", help="also draw the curves to STEM.png and STEM.svg")
    arguments = parser.parse(words)
    if arguments.out:
        require_extra("plots", "a figure")  # before the table is printed
    comparison = compare(arguments.run, arguments.others)
    print_table(comparison.table())
    if arguments.out:
        with styled():
            paths = save_figure(comparison.figure(), Path(arguments.out))
        print(f"drawn as {' and '.join(map(str, paths))}")
    return 0
