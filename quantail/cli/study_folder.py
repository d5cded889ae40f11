"""quantail study status, resume and figures: what is done with a study that is there."""

from pathlib import Path

from rich.console import Console

from quantail.cli.parser import Parser, add_trust
from quantail.cli.study_run import add_engine, go, show
from quantail.experiments.folder import State, StudyFolder
from quantail.experiments.progress import study_table
from quantail.files import is_held
from quantail.registry import trust_flags


def status(words: list[str]) -> int:
    """Where a study stands, by its files."""
    folder = _asked("status", "Where a study stands: done, under way, failed and why.", words)
    study, states = folder.read(), folder.states()
    done = sum(state.done for state in states)
    failed = {state.job.name: state.failed for state in states if state.failed}
    begun = [state for state in states if state.begun and not state.done and not state.failed]
    running = is_held(folder.path / ".lock")
    console = Console(highlight=False, markup=False)
    console.print(f"{study.title} ({study.name}), {'running now' if running else 'not running'}")
    waiting = len(states) - done - len(failed) - len(begun)
    console.print(
        f"{done} of {len(states)} runs done, {len(begun)} begun, {waiting} not begun, "
        f"{len(failed)} failed"
    )
    if begun or failed:
        shown = begun if running else [_still(state) for state in begun]
        console.print(study_table(shown, failed, "running" if running else "begun"), soft_wrap=True)
    if done < len(states) and not running:
        flags = trust_flags(folder.trust)
        console.print(f"go on with: quantail study resume {folder.path}{flags}", soft_wrap=True)
    return 0


def resume(words: list[str]) -> int:
    """Go on with a study."""
    parser = Parser(
        prog="quantail study resume",
        description="Go on with a study: runs that were stopped go on from their checkpoints, bit for "
        "bit as if nothing had happened, and what failed is tried again.",
    )
    parser.add_argument("study", metavar="STUDY", help="folder of the study")
    add_engine(parser)
    arguments = parser.parse(words)
    StudyFolder(arguments.study, arguments.trust).read()
    return go(None, Path(arguments.study), arguments)


def figures(words: list[str]) -> int:
    """Draw a study again."""
    folder = _asked(
        "figures",
        "Draw a study's figures and tables again, from its results on disk alone: study.json and "
        "results.csv are enough. What is not there yet is marked.",
        words,
    )
    show(folder)
    return 0


def _asked(name: str, about: str, words: list[str]) -> StudyFolder:
    parser = Parser(prog=f"quantail study {name}", description=about)
    parser.add_argument("study", metavar="STUDY", help="folder of the study")
    add_trust(parser, "the study")
    arguments = parser.parse(words)
    folder = StudyFolder(arguments.study, arguments.trust)
    folder.read()
    return folder


def _still(state: State) -> State:
    """A run that nobody trains now has no rate."""
    return State(state.job, state.steps, 0.0, state.done, state.failed)
