"""`quantail`: finds the command and turns a user's mistake into one sentence."""

import importlib
import os
import sys

from quantail.errors import QuantailError, did_you_mean
from quantail.registry import add_working_folder, module_of

COMMANDS = {
    "train": "train an agent on an environment",
    "resume": "go on with a run, exactly where it stopped",
    "eval": "play whole episodes with a trained agent",
    "scores": "human-normalised scores of runs, beside the published ones",
    "report": "one page about runs: curves, scores, distributions, settings",
    "compare": "a run's learning curve beside published ones, or another run's",
    "play": "play an environment yourself, and record start states",
    "watch": "watch an agent play in the browser, and turn its risk as it plays",
    "video": "a game beside the return distribution of every action, as MP4",
    "calibrate": "is the learned distribution true? a report and a figure",
    "risk-profile": "mean, VaR and CVaR of whole episodes under each risk measure",
    "study": "the paper's studies: grids of runs and their figures",
    "worlds": "small worlds whose exact return law is known",
    "agents": "the agents there are, or several side by side",
    "risks": "the risk measures there are",
    "presets": "the presets there are, or one of them as a TOML file",
    "bench": "how fast this machine is, beside what it could be",
    "doctor": "check that this machine has all that is needed",
}

MODULES = {"eval": "evaluate", "risk-profile": "risk_profile"}


def main(argv: list[str] | None = None) -> None:
    """Run one command and exit."""
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: list[str]) -> int:
    """Run one command; its exit status."""
    if not argv or argv[0] in ("-h", "--help"):
        print(_overview())
        return 0 if argv else 2
    if argv[0] == "--version":
        from quantail import __version__

        print(f"quantail {__version__}")
        return 0
    name, words = argv[0], argv[1:]
    try:
        if name not in COMMANDS:
            raise QuantailError(
                f"unknown command {name!r}: it takes {', '.join(COMMANDS)}."
                f"{did_you_mean(name, COMMANDS)}"
            )
        if any(map(_names_code, words)):
            add_working_folder()
        command = importlib.import_module(f"quantail.cli.{MODULES.get(name, name)}")
        status: int = command.run(words)
        return status
    except QuantailError as error:
        return _complain(str(error), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader went away
        return 1
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        reason = (error.strerror or str(error)).lower()
        kept = "; what was saved before is whole" * (name in ("train", "resume"))
        return _complain(f"cannot use{where}: {reason}{kept}.", 1)
    except KeyboardInterrupt:
        return _complain("stopped.", 130)


def _names_code(word: str) -> bool:
    """Return whether a word of the command line names a module, as module:id or behind --trust."""
    flag, _, value = word.rpartition("=")
    return "--trust" in (word, flag) or bool(module_of(value))


def _complain(sentence: str, status: int) -> int:
    print(f"quantail: {sentence}", file=sys.stderr)
    return status


def _overview() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {about}" for name, about in COMMANDS.items())
    return (
        "usage: quantail COMMAND ...\n\n"
        "Distributional and risk-sensitive reinforcement learning.\n\n"
        f"{rows}\n\n"
        "`quantail COMMAND --help` tells more. A first run: quantail train MinAtar/Breakout-v1"
    )
