"""quantail compare RUN --with published"""

from pathlib import Path

from quantail.cli.parser import Parser
from quantail.cli.sheets import print_sheet
from quantail.viewing.comparison import compare
from quantail.viewing.style import save_figure, styled


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail compare",
        description="Put a run's learning curve beside the published ones of its game, or beside other "
        "runs of it, at the same counts of frames. The protocol of each source is told below the table: "
        "where they differ, so may the scores.",
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
    parser.add_argument("--out", metavar="STEM", help="draw the curves as STEM.png and STEM.svg too")
    arguments = parser.parse(words)
    comparison = compare(arguments.run, arguments.others)
    print_sheet(comparison.sheet())
    if arguments.out:
        with styled():
            paths = save_figure(comparison.figure(), Path(arguments.out))
        print(f"drawn as {' and '.join(map(str, paths))}")
    return 0
