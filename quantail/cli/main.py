"""Entry point of `quantail`: dispatch to a command and report errors in one sentence."""

import importlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from quantail.cli.first import FIRST
from quantail.errors import QuantailError
from quantail.training.allocator import keep_large_blocks
from quantail.trust import add_working_folder, module_of
from quantail.validation import one_of

COMMANDS = {
    "demo": "watch agents that are trained already, in the browser, within seconds",
    "train": "train an agent on an environment",
    "resume": "continue a run exactly where it stopped",
    "eval": "evaluate a trained agent on whole episodes",
    "scores": "show human-normalised scores of runs, next to published ones",
    "report": "write an HTML report on runs: curves, scores, distributions, settings",
    "compare": "compare a learning curve with published curves or other runs",
    "play": "play an environment yourself and record start states",
    "watch": "watch an agent play in the browser and change its risk measure",
    "video": "film an episode with the return distribution of every action (MP4)",
    "calibrate": "check the learned return distributions against measured returns",
    "risk-profile": "measure mean, VaR and CVaR of episodes under several risk measures",
    "study": "run the paper's studies, or your own: grids of runs and their figures",
    "worlds": "list tabular worlds with known return distributions, and solve them",
    "agents": "list the agents, or compare their settings",
    "risks": "list the risk measures",
    "presets": "list the presets, or print one as TOML",
    "bench": "benchmark Quantail on this machine",
    "doctor": "check the installation",
}

MODULES = {"eval": "evaluate", "risk-profile": "risk_profile"}


def main(argv: list[str] | None = None) -> None:
    """Run one command and exit."""
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: list[str]) -> int:
    """Run one command and return its exit status."""
    if not argv or argv[0] in ("-h", "--help"):
        print(_overview())
        return 0 if argv else 2
    if argv[0] == "--version":
        from quantail import __version__

        print(f"quantail {__version__}")
        return 0
    name, words = argv[0], argv[1:]
    try:
        one_of("command", name, COMMANDS)
        if any(map(_names_code, words)):
            add_working_folder()
        command = importlib.import_module(f"quantail.cli.{MODULES.get(name, name)}")
        keep_large_blocks()
        with _plain_warnings():
            status: int = command.run(words)
        return status
    except QuantailError as error:
        return _complain(str(error), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader closed the pipe
        return 1
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        reason = (error.strerror or str(error)).lower()
        saved = "; earlier checkpoints are intact" * (name in ("train", "resume"))
        return _complain(f"cannot use{where}: {reason}{saved}.", 1)
    except KeyboardInterrupt:
        return _complain("stopped.", 130)


def _names_code(word: str) -> bool:
    """Return whether an argument names a module, as module:id or after --trust."""
    flag, _, value = word.rpartition("=")
    return "--trust" in (word, flag) or bool(module_of(value))


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print Quantail's own warnings as sentences, without the line of code that gives them."""
    usual = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if category.__module__.partition(".")[0] == "quantail":
            _complain(str(message), 0)
        else:
            usual(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


def _complain(sentence: str, status: int) -> int:
    print(f"quantail: {sentence}", file=sys.stderr)
    return status


def _overview() -> str:
    """Return the commands, and the settings of `train` that people change first."""
    rows = "\n".join(f"  {name:<13}{about}" for name, about in COMMANDS.items())
    first = "\n".join(f"  --{n.replace('_', '-'):<16}{about}" for n, about in FIRST.items())
    return (
        "usage: quantail COMMAND ...\n\n"
        "Distributional and risk-sensitive reinforcement learning. To start:\n"
        "  quantail demo\n"
        "  quantail train CartPole-v1 --agent iqn --risk cvar:0.25\n\n"
        f"commands\n{rows}\n\n"
        f"settings of train that people change first\n{first}\n\n"
        "quantail COMMAND --help explains a command, quantail train --help-all all settings."
    )
