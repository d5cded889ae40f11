"""quantail study NAME and quantail study grid FILE: start or continue a study."""

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from quantail.cli.parser import Parser, add_trust
from quantail.cli.tables import print_table
from quantail.errors import QuantailError
from quantail.experiments.engines import ENGINES, Engine
from quantail.experiments.estimate import estimate
from quantail.experiments.folder import StudyFolder
from quantail.experiments.progress import view_for
from quantail.experiments.reading import changed, read_study
from quantail.experiments.results import read_results
from quantail.experiments.runner import StudyOutcome, run_study
from quantail.experiments.study import Job, Study
from quantail.experiments.tables import tables
from quantail.trust import trust_flags
from quantail.validation import number, whole_number
from quantail.viewing.studies import draw_study, require_extras


def run_named(name: str, words: list[str]) -> int:
    """Run a study of the paper."""
    about = read_study(name)
    parser = Parser(
        prog=f"quantail study {name}",
        description=f"{about.title}: {len(about.jobs())} runs with the paper's settings. --small runs a "
        "short version on MinAtar that takes about half an hour on two free cores.",
    )
    parser.add_argument("--small", action="store_true", help="run the short version on MinAtar")
    add_changes(parser, about)
    add_engine(parser)
    arguments = parser.parse(words)
    return start(read_study(name, small=arguments.small, trust=arguments.trust), arguments)


def run_grid(words: list[str]) -> int:
    """Run a study from a TOML file."""
    parser = Parser(
        prog="quantail study grid",
        description="Run the study in a TOML file: games, steps, seeds, [settings] of every run, a "
        "[grid] of axes, and [references] for comparison. docs/guides/studies.md describes the format.",
    )
    parser.add_argument("file", metavar="FILE.toml", help="file of the study")
    parser.add_argument("--small", action="store_true", help="apply the table [small] of the file")
    add_changes(parser)
    add_engine(parser)
    arguments = parser.parse(words)
    return start(read_study(arguments.file, small=arguments.small, trust=arguments.trust), arguments)


def add_changes(parser: Parser, study: Study | None = None) -> None:
    """Add the options that change a study; hide those for which this study has no axis."""
    axes = None if study is None else [axis.name for axis in study.grid]
    group = parser.add_argument_group("study")
    group.add_argument(
        "--games",
        nargs="+",
        default=[],
        metavar="ENV",
        help="environments to use instead, by id or name",
    )
    group.add_argument("--steps", metavar="N", help="length of each run, in agent steps")
    group.add_argument("--seeds", metavar="K", help="seeds 0 to K−1 for each combination")
    for flag, axis in (("--measures", "risk"), ("--agents", "agent")):
        about = f"other values for the axis {axis}" + (", if the file has one" if axes is None else "")
        text = about if axes is None or axis in axes else argparse.SUPPRESS  # an error explains why
        group.add_argument(flag, nargs="+", default=[], metavar=axis.upper(), help=text)
    group.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="settings for every run, such as batch_size=64",
    )
    group.add_argument("--out", metavar="DIR", help="folder of the study [studies/NAME]")


def add_engine(parser: Parser) -> None:
    """Add the options that choose where a study runs."""
    group = parser.add_argument_group("engine")
    group.add_argument(
        "--engine", default="local", metavar="|".join(ENGINES), help="where to run [local]"
    )
    group.add_argument(
        "--jobs", metavar="J", help="local: number of runs in parallel [as many as the cores allow]"
    )
    group.add_argument(
        "--address",
        metavar="auto|ray://HOST:PORT|local",
        help="ray: address of a running cluster, or local to start one on this machine [auto]",
    )
    group.add_argument(
        "--gpus", default="1", metavar="G", help="ray: GPUs for each run with device cuda [1]"
    )
    group.add_argument("--yes", action="store_true", help="start without asking, even if it takes long")
    group.add_argument("--quiet", action="store_true", help="print only the final tables")
    add_trust(parser, "the study")


def start(study: Study, arguments: argparse.Namespace) -> int:
    """Run a study with the changes given as options."""
    study = changed(
        study,
        games=arguments.games,
        steps=arguments.steps,
        seeds=None if arguments.seeds is None else whole_number("seeds", arguments.seeds, 1),
        measures=arguments.measures,
        agents=arguments.agents,
        settings=dict(_pair(word) for word in arguments.set),
    )
    return run_and_show(study, Path(arguments.out or Path("studies") / study.name), arguments)


def run_and_show(study: Study | None, out: Path, arguments: argparse.Namespace) -> int:
    """Run the remaining runs, draw the figures, and return the exit status."""
    console = Console(file=sys.stderr, highlight=False, markup=False)
    # Before the runs, which take hours.
    require_extras(StudyFolder(out, arguments.trust).read() if study is None else study)

    def confirm(folder: StudyFolder, engine: Engine, left: list[Job]) -> bool:
        return _confirm(console, folder, engine, left, arguments)

    outcome = run_study(
        study,
        out,
        engine=arguments.engine,
        jobs=None if arguments.jobs is None else whole_number("jobs", arguments.jobs, 1),
        address=arguments.address,
        gpus=number("gpus", arguments.gpus, above=0, most=64),
        view=view_for(sys.stderr, quiet=arguments.quiet),
        confirm=confirm,
        trust=arguments.trust,
    )
    if outcome is None:
        console.print("not started.")
        return 1
    show(outcome.folder)
    _print_outcome(console, outcome)
    return 130 if outcome.stopped_by else 1 if outcome.failed else 0


def show(folder: StudyFolder) -> None:
    """Draw the figures and print the tables of a study, if it has results."""
    results = read_results(folder.path, folder.trust)
    for table in tables(results).values():
        print_table(table)
    if results.traces:
        draw_study(folder.path, folder.trust)
        print(f"figures and tables are in {folder.figures}, all evaluations in {folder.results}")


def _confirm(
    console: Console, folder: StudyFolder, engine: Engine, left: list[Job], arguments: argparse.Namespace
) -> bool:
    """Print the estimate, and ask on a terminal whether to start a long study."""
    study = folder.read()
    expected = estimate(folder, left, engine.at_once)
    lines = {
        "study": f"{study.title} ({study.name})",
        "runs": f"{len(folder.jobs)}, of which {len(folder.jobs) - len(left)} are done",
        **expected.lines(),
        "engine": engine.describe(),
        "folder": str(folder.path),
    }
    if not arguments.quiet:
        for name, text in lines.items():
            console.print(Text.assemble((f"{name:<8}", "bold"), text), soft_wrap=True)
    if arguments.yes or not expected.long or not sys.stdin.isatty():
        return True
    console.print("This will take long. Start it? [y/N] ", end="")
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:  # Ctrl-D
        console.print()
        return False


def _print_outcome(console: Console, outcome: StudyOutcome) -> None:
    folder = outcome.folder
    if outcome.stopped_by:
        console.print(f"stopped with {outcome.done} of {outcome.total} runs done; all progress is saved")
    for name, reason in outcome.failed.items():
        console.print(f"failed: {name}: {reason} (see {folder.log(name)})", soft_wrap=True)
    if outcome.done < outcome.total:
        flags = trust_flags(folder.trust)
        console.print(f"continue with: quantail study resume {folder.path}{flags}", soft_wrap=True)


def _pair(word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not equals:
        raise QuantailError(f"--set takes NAME=VALUE, such as batch_size=64, not {word!r}.")
    return name.replace("-", "_"), value
