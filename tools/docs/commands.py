"""The manual of the command line, from the parsers of the commands."""

import argparse
import importlib

from quantail.cli import study
from quantail.cli.main import COMMANDS, MODULES
from quantail.cli.parser import Parser
from quantail.experiments.reading import shipped
from tools.docs.tables import code, plain, table


class _CaughtError(Exception):
    """A parser was asked for its help."""


def page() -> str:
    """Return all commands with their arguments."""
    rows = [(f"[`quantail {name}`](#{name})", plain(about)) for name, about in COMMANDS.items()]
    return "\n\n".join([table(("Command", "What it does"), rows), *map(_command, COMMANDS)])


def _command(name: str) -> str:
    lines = [f"## {name}"]
    if name == "study":
        some = next(iter(shipped()))
        lines += [f"```text\n{study.USAGE.strip()}\n```"]
        rows = [(code(word), plain(about)) for word, about in study.SUBCOMMANDS.items()]
        lines += [table(("", "What it does"), rows)]
        for word in (some, *study.SUBCOMMANDS):
            title = "NAME" if word == some else word
            about = _about(_parser(name, word), described=word != some).replace(some, "NAME")
            lines += [f"### study {title}", about]
            if word == some:
                lines.insert(-1, f"NAME is one of {', '.join(map(code, shipped()))}.")
    else:
        lines.append(_about(_parser(name)))
    if name == "train":
        lines.append(
            "Every [setting](settings.md) is an option too, with dashes: `--batch-size 64`. `--help` "
            "shows these options with the values for your environment, and `--help-all` all settings."
        )
    return "\n\n".join(lines)


def _parser(name: str, *words: str) -> Parser:
    """Return the parser that a command asks for its help."""
    module = importlib.import_module(f"quantail.cli.{MODULES.get(name, name)}")
    caught: list[Parser] = []

    def catch(self: Parser) -> str:
        caught.append(self)
        raise _CaughtError

    usual, Parser.format_help = Parser.format_help, catch  # type: ignore[method-assign]
    try:
        module.run([*words, "--help"])
    except _CaughtError:
        pass
    finally:
        Parser.format_help = usual  # type: ignore[method-assign]
    return caught[0]


def _about(parser: Parser, *, described: bool = True) -> str:
    """Return what a command does, how it is called, and its arguments."""
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    lines = [plain(parser.description or "")] if described else []
    lines.append(f"```text\n{_wrapped(usage)}\n```")
    formatter = parser._get_formatter()
    for group in parser._action_groups:
        rows = []
        for action in group._group_actions:
            if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
                continue
            name = formatter._format_action_invocation(action)
            rows.append((code(name), plain(formatter._expand_help(action) if action.help else "")))
        if rows:
            usual = ("positional arguments", "options", "optional arguments")
            if group.title not in usual:
                lines.append(f"**{plain(group.title or '')}**")
            if group.description:
                lines.append(plain(group.description))
            first = "Argument" if group.title == "positional arguments" else "Option"
            lines.append(table((first, "What it does"), rows))
    return "\n\n".join(lines)


def _wrapped(usage: str, width: int = 90) -> str:
    lines = [""]
    for word in usage.split(" "):
        if len(lines[-1]) + len(word) > width:
            lines.append("       ")
        lines[-1] += f" {word}" if lines[-1].strip() else word
    return "\n".join(lines)
