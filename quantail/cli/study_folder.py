"""quantail study status, resume and figures: commands for an existing study."""

from pathlib import Path

from rich.console import Console

from quantail.cli.parser import Parser, add_trust
from quantail.cli.study_run import add_engine, run_and_show, show
from quantail.experiments.folder import State, StudyFolder
from quantail.experiments.progress import study_table
from quantail.files import is_held
from quantail.trust import trust_flags


def status(words: list[str]) -> int:
    """Print the progress of a study, read from its files."""
    folder = _parse_folder("status", "Show which runs are done, in progress or failed, and why.", words)
    study, states = folder.read(), folder.states()
    done = sum(state.done for state in states)
    failed = {state.job.name: state.failed for state in states if state.failed}
    started = [state for state in states if state.started and not state.done and not state.failed]
    running = is_held(folder.path / ".lock")
    console = Console(highlight=False, markup=False)
    console.print(f"{study.title} ({study.name}), {'running now' if running else 'not running'}")
    waiting = len(states) - done - len(failed) - len(started)
    console.print(
        f"{done} of {len(states)} runs done, {len(started)} started, {waiting} not started, "
        f"{len(failed)} failed"
    )
    if started or failed:
        shown = started if running else [_without_rate(state) for state in started]
        console.print(study_table(shown, failed, "running" if running else "started"), soft_wrap=True)
    if done < len(states) and not running:
        flags = trust_flags(folder.trust)
        console.print(f"continue with: quantail study resume {folder.path}{flags}", soft_wrap=True)
    return 0


def resume(words: list[str]) -> int:
    """Continue a study."""
    parser = Parser(
        prog="quantail study resume",
        description="Continue a study. Interrupted runs continue from their checkpoints, with results "
        "that are bit for bit the same, and failed runs are tried again.",
    )
    parser.add_argument("study", metavar="STUDY", help="folder of the study")
    add_engine(parser)
    arguments = parser.parse(words)
    StudyFolder(arguments.study, arguments.trust).read()
    return run_and_show(None, Path(arguments.study), arguments)


def figures(words: list[str]) -> int:
    """Draw the figures of a study."""
    folder = _parse_folder(
        "figures",
        "Draw the figures and tables of a study from its results on disk; study.json and results.csv "
        "are enough. Incomplete results are marked.",
        words,
    )
    show(folder)
    return 0


def _parse_folder(name: str, about: str, words: list[str]) -> StudyFolder:
    """Parse the arguments of a command that takes one study, and open its folder."""
    parser = Parser(prog=f"quantail study {name}", description=about)
    parser.add_argument("study", metavar="STUDY", help="folder of the study")
    add_trust(parser, "the study")
    arguments = parser.parse(words)
    folder = StudyFolder(arguments.study, arguments.trust)
    folder.read()
    return folder


def _without_rate(state: State) -> State:
    """Return the state of a run that is not running now, which has no rate."""
    return State(state.job, state.steps, 0.0, state.done, state.failed)
