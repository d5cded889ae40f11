"""quantail bench"""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from quantail.cli.parser import Parser, add_trust
from quantail.config import coerce
from quantail.errors import QuantailError
from quantail.files import write_json
from quantail.text import counted
from quantail.validation import number, one_of

if TYPE_CHECKING:
    from quantail.bench import Row
    from quantail.bench.cycle import Job

WIDTH = 50  # of the first column


def run(words: list[str]) -> int:
    import torch

    from quantail.bench import BENCHES, cycle, run_benches
    from quantail.training.process import num_threads

    parser = Parser(
        prog="quantail bench",
        description="Benchmark Quantail on this machine. Each benchmark is timed in alternation with a "
        "bound; the ratio is the bound's time over the measured time, so 1 means as fast as the bound. "
        "The bounds are: for learner and act, the dense products and convolutions of the network alone "
        "(IQN skips features that are zero for the whole batch, so it can be faster); for replay, "
        "copying the same number of bytes; for end-to-end, the updates alone; for cycle, the dense "
        "products of its decisions and its update; for watch, the decision and the environment step "
        "alone.",
    )
    parser.add_argument(
        "bench", nargs="*", metavar="BENCH", help=f"benchmarks to run: {', '.join(BENCHES)} [all]"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--seconds", default="4", metavar="S", help="approximate time for each row [4]")
    parser.add_argument(
        "--threads", default="0", metavar="N", help="number of CPU threads [0: PyTorch's default]"
    )
    cycles = parser.add_argument_group(
        "options of cycle",
        "A cycle is as many steps as a run has between two updates, and one update, on one thread. Its "
        "row has the share of each part: act, play, store, sample (with the new priorities) and update.",
    )
    cycles.add_argument(
        "--preset",
        action="append",
        metavar="NAME",
        help=f"only this preset, of {', '.join(cycle.ENVS)}; can be repeated [all]",
    )
    cycles.add_argument(
        "--agent", action="append", metavar="NAME", help="this agent; can be repeated [iqn]"
    )
    cycles.add_argument(
        "--checkpoint",
        metavar="RUN",
        help="use the settings of this run and the weights of its last checkpoint instead",
    )
    add_trust(parser)
    arguments = parser.parse(words)
    for name in arguments.bench:
        one_of("bench", name, BENCHES)
    seconds = number("seconds", arguments.seconds, 0, 3600)
    threads = coerce("threads", arguments.threads)
    path = Path(arguments.json) if arguments.json else None
    if path and (path.is_dir() or not path.parent.is_dir()):
        raise QuantailError(f"json takes a file in a folder that exists, not {str(path)!r}.")
    names = list(dict.fromkeys(arguments.bench)) or list(BENCHES)
    benches = BENCHES | {"cycle": partial(cycle.rows, jobs=_cycles(arguments))}
    with num_threads(threads or torch.get_num_threads()):
        _print_rows(run_benches(names, seconds, benches), path)
    return 0


def _cycles(arguments: argparse.Namespace) -> "list[Job] | None":
    """Return the runs whose cycles are timed, if they are chosen."""
    from quantail.bench.cycle import ENVS, fresh_jobs, trained_job

    chosen = [name for name in ("preset", "agent", "checkpoint") if getattr(arguments, name)]
    if chosen and "cycle" not in arguments.bench:
        raise QuantailError(f"{chosen[0]} is an option of `quantail bench cycle`: name that benchmark.")
    if arguments.checkpoint and len(chosen) > 1:
        raise QuantailError(f"checkpoint takes the {chosen[0]} of its run: leave {chosen[0]} out.")
    if arguments.checkpoint:
        return [trained_job(arguments.checkpoint, arguments.trust)]
    if not chosen:
        return None
    presets = [one_of("preset", name, ENVS) for name in arguments.preset or ()]
    return fresh_jobs(presets, arguments.agent or ())


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
