"""quantail study: the paper's studies and a user's own, run, looked at and drawn."""

import sys

from quantail.cli.listing import print_table
from quantail.errors import QuantailError, did_you_mean

USAGE = """usage: quantail study NAME [--small] [--games ...] [--steps N] [--seeds K] [--out DIR] ...
       quantail study grid FILE.toml [the same flags]
       quantail study status|resume|figures STUDY

A study is a grid of training runs and one figure. It can be stopped at any time and goes on with
`quantail study resume STUDY`; given again with more --seeds, it adds them.
"""
FURTHER = {
    "grid": "a grid of your own over any settings, from a TOML file (see docs/studies.md)",
    "status": "where a study stands: done, under way, failed and why",
    "resume": "go on with a study; what failed is tried again",
    "figures": "draw a study again from its results, finished or not",
}


def run(words: list[str]) -> int:
    from quantail.experiments.reading import shipped

    if not words or words[0] in ("-h", "--help"):
        _overview()
        return 0
    name, rest = words[0], words[1:]
    if name in shipped():
        from quantail.cli.study_run import run_named

        return run_named(name, rest)
    if name == "grid":
        from quantail.cli.study_run import run_grid

        return run_grid(rest)
    if name in ("status", "resume", "figures"):
        from quantail.cli import study_folder

        status: int = getattr(study_folder, name)(rest)
        return status
    known = [*shipped(), *FURTHER]
    raise QuantailError(
        f"unknown study {name!r}: it takes {', '.join(known)}.{did_you_mean(name, known)}"
    )


def _overview() -> None:
    from quantail.experiments.reading import read_study, shipped

    print(USAGE)
    rows = []
    for name in shipped():
        whole, small = read_study(name), read_study(name, small=True)
        runs = [str(len(study.jobs())) for study in (whole, small)]
        rows.append((name, whole.title, runs[0], f"{runs[1]} of {small.settings['steps']:,} steps"))
    print_table(("study", "what it shows", "runs", "with --small"), rows)
    print()
    print_table(("", ""), list(FURTHER.items()))
    print("\nquantail study NAME --help tells more. A first one: quantail study samples --small")
    sys.stdout.flush()
