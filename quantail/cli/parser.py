"""Argument parsing with errors in one sentence."""

import argparse
from typing import Any, NoReturn

from quantail import registry
from quantail.errors import QuantailError, did_you_mean


class Parser(argparse.ArgumentParser):
    """An ArgumentParser without abbreviations that raises `QuantailError` instead of exiting."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=34, width=100),
            **options,
        )

    def error(self, message: str) -> NoReturn:
        raise QuantailError(f"{message}. See `{self.prog} --help`.")

    def parse(self, words: list[str]) -> argparse.Namespace:
        """Parse the arguments; for an unknown flag, suggest the nearest known one."""
        found, unknown = self.parse_known_args(words)
        if unknown:
            known = [flag[2:] for flag in self._option_string_actions if flag.startswith("--")]
            word = next((word for word in unknown if word.startswith("-")), unknown[0])
            guess = did_you_mean(word.partition("=")[0].lstrip("-"), known).replace("'", "'--", 1)
            raise QuantailError(f"unknown argument {word!r}.{guess} See `{self.prog} --help`.")
        return found


def add_trust(parser: Parser, what: str = "run.json", *, hidden: bool = False) -> None:
    """Add --trust, with which the user allows files to name modules."""
    parser.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="MODULE",
        help=argparse.SUPPRESS
        if hidden
        else f"import this module, and so run its code, where {what} names it; can be repeated "
        "[none: files do not run code]",
    )


def add_callbacks(parser: Parser, *, hidden: bool = False) -> None:
    """Add --callback, which names classes of callbacks."""
    parser.add_argument(
        "--callback",
        action="append",
        default=[],
        metavar="NAME|module:Class",
        help=argparse.SUPPRESS
        if hidden
        else "call this callback during the run; can be repeated (see docs/guides/extending.md)",
    )


def callbacks_of(names: list[str]) -> list[Any]:
    """Return the callbacks of these names, made without arguments."""
    found = []
    for name in names:
        callback = registry.admit("callback", name)
        try:
            found.append(callback())
        except Exception as error:
            raise QuantailError(
                f"callback {name!r} cannot be made without arguments ({error}): pass an instance to "
                "quantail.train in Python."
            ) from error
    return found
