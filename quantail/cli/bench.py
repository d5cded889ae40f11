"""quantail bench"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from quantail.cli.parser import Parser
from quantail.config import coerce
from quantail.errors import QuantailError
from quantail.files import write_json
from quantail.text import counted
from quantail.validation import number, one_of

if TYPE_CHECKING:
    from quantail.bench import Row

WIDTH = 50  # of the first column


def run(words: list[str]) -> int:
    import torch

    from quantail.bench import BENCHES, run_benches
    from quantail.training.process import num_threads

    parser = Parser(
        prog="quantail bench",
        description="Benchmark Quantail on this machine. Each benchmark is timed in alternation with a "
        "bound; the ratio is the bound's time over the measured time, so 1 means as fast as the bound. "
        "The bounds are: for learner and act, the dense products and convolutions of the network alone "
        "(IQN skips features that are zero for the whole batch, so it can be faster); for replay, "
        "copying the same number of bytes; for end-to-end, the updates alone; for watch, the decision "
        "and the environment step alone.",
    )
    parser.add_argument(
        "bench", nargs="*", metavar="BENCH", help=f"benchmarks to run: {', '.join(BENCHES)} [all]"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--seconds", default="4", metavar="S", help="approximate time for each row [4]")
    parser.add_argument(
        "--threads", default="0", metavar="N", help="number of CPU threads [0: PyTorch's default]"
    )
    arguments = parser.parse(words)
    for name in arguments.bench:
        one_of("bench", name, BENCHES)
    seconds = number("seconds", arguments.seconds, 0, 3600)
    threads = coerce("threads", arguments.threads)
    path = Path(arguments.json) if arguments.json else None
    if path and (path.is_dir() or not path.parent.is_dir()):
        raise QuantailError(f"json takes a file in a folder that exists, not {str(path)!r}.")
    names = list(dict.fromkeys(arguments.bench)) or list(BENCHES)
    with num_threads(threads or torch.get_num_threads()):
        _print_rows(run_benches(names, seconds), path)
    return 0


def _print_rows(found: "Iterator[Row]", path: Path | None) -> None:
    """Print the rows as they come, and write all so far to the file at `path`."""
    from quantail.bench.suite import machine

    rows: list[Row] = []
    console = Console(soft_wrap=True, highlight=False)
    for row in found:
        if not rows:
            about = machine()
            count = counted(about["threads"], "thread")
            console.print(f"{about['processor']}, {count}, torch {about['torch']}")
            console.print(f"{'':{WIDTH}}{'median':>12}{'best':>12}{'bound':>12}{'ratio':>8}")
        rows.append(row)
        times = "".join(f"{_time_text(t):>12}" for t in (row.median_ms, row.best_ms, row.bound_ms))
        more = ", ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in row.more.items())
        console.print(
            f"{row.bench + ' ' + row.setting:{WIDTH}}{times}{row.ratio:>8.2f}  {more}".rstrip()
        )
        if path:
            write_json(path, {"machine": machine(), "rows": [one.to_dict() for one in rows]})


def _time_text(milliseconds: float) -> str:
    if milliseconds >= 0.1:
        return f"{milliseconds:.3g} ms"
    return f"{1000 * milliseconds:.3g} µs"
