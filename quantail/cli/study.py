"""quantail study: run, inspect and draw the paper's studies and your own."""

import sys

from quantail.cli.listing import print_table
from quantail.validation import one_of

USAGE = """usage: quantail study NAME [--small] [--games ...] [--steps N] [--seeds K] [--out DIR] ...
       quantail study grid FILE.toml [the same options]
       quantail study status|resume|figures STUDY

A study is a grid of training runs and one figure. You can stop it at any time and continue it with
`quantail study resume STUDY`. Run it again with a larger --seeds to add seeds.
"""
SUBCOMMANDS = {
    "grid": "run your own grid over any settings, from a TOML file (see docs/guides/studies.md)",
    "status": "show which runs are done, in progress or failed, and why",
    "resume": "continue a study and retry failed runs",
    "figures": "draw the figures of a study from its results, finished or not",
}


def run(words: list[str]) -> int:
    from quantail.experiments.reading import shipped

    if not words or words[0] in ("-h", "--help"):
        _overview()
        return 0
    name, rest = one_of("study", words[0], [*shipped(), *SUBCOMMANDS]), words[1:]
    if name in shipped():
        from quantail.cli.study_run import run_named

        return run_named(name, rest)
    if name == "grid":
        from quantail.cli.study_run import run_grid

        return run_grid(rest)
    from quantail.cli import study_folder

    status: int = getattr(study_folder, name)(rest)
    return status


def _overview() -> None:
    from quantail.experiments.reading import read_study, shipped

    print(USAGE)
    rows = []
    for name in shipped():
        full, small = read_study(name), read_study(name, small=True)
        runs = [str(len(study.jobs())) for study in (full, small)]
        rows.append((name, full.title, runs[0], f"{runs[1]} of {small.settings['steps']:,} steps"))
    print_table(("study", "title", "runs", "runs with --small"), rows)
    print()
    print_table(("", ""), list(SUBCOMMANDS.items()))
    print("\nRun `quantail study NAME --help` for details. To start: quantail study samples --small")
    sys.stdout.flush()
