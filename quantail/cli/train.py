"""quantail train ENV. Every setting is an option; the defaults come from the environment's preset."""

import argparse
from typing import Any

from quantail.cli.first import FIRST
from quantail.cli.parser import Parser, add_callbacks, add_trust, callbacks_of
from quantail.config import PARTS, choices, flat_settings, is_dotted, only_with
from quantail.config.toml import unit_and_source
from quantail.errors import QuantailError
from quantail.recipes import Composition, configured
from quantail.registry import label, parts
from quantail.settings import shown
from quantail.training.loggers.terminal import ProgressBar, exit_status
from quantail.training.train import train

DEFAULT_ENV = "MinAtar/Breakout-v1"
METAVARS = {int: "N", float: "X", str: "NAME", tuple: "N,N", list: "N,N"}
USAGE = "quantail train [ENV] [--agent NAME] [--risk MEASURE] [--steps N] [--SETTING VALUE ...]"
HELP = ("-h", "--help", "--help-all")


def run(words: list[str]) -> int:
    words, dotted = split_dotted(words)
    arguments = vars(_parser().parse([word for word in words if word not in HELP]))
    env, out, quiet = arguments.pop("env"), arguments.pop("out"), arguments.pop("quiet")
    trust, preset = arguments.pop("trust"), arguments.pop("preset")
    callbacks = callbacks_of(arguments.pop("callback"))
    given = {name: value for name, value in arguments.items() if value is not None} | dotted
    composition = configured(env, preset, given, trust=trust)
    if any(word in words for word in HELP):
        print(_parser(composition, everything="--help-all" in words).format_help(), end="")
        return 0
    bar = ProgressBar(quiet=quiet)
    options: dict[str, Any] = {"config": composition.config, "callbacks": [bar, *callbacks]}
    return exit_status(bar, lambda: train(env, out=out, **options))


def split_dotted(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """Take the settings of parts from outside, such as `--head.width 8`, out of the words."""
    rest, dotted, words = [], {}, list(words)
    while words:
        word = words.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if not word.startswith("--") or not is_dotted(name):
            rest.append(word)
            continue
        if not equals:
            if not words or words[0].startswith("--"):
                raise QuantailError(f"--{name} takes a value.")
            value = words.pop(0)
        dotted[name] = value
    return rest, dotted


def _parser(composition: Composition | None = None, *, everything: bool = True) -> Parser:
    """Return the parser; with a composition, its help shows the values that are in force.

    Without `everything`, the help shows only the settings that people change first.
    """
    parser = Parser(prog="quantail train", usage=USAGE, add_help=False, description="Train an agent.")
    if composition:
        parser.description = (
            f"Train an agent. In brackets: the value for agent {composition.config.run.agent} with "
            f"preset {composition.config.run.preset} and the options given."
        )
        parser.epilog = (
            "In parentheses: unit and source of a value; "
            "ours is one that no paper gives. "
            "A step is one decision of the agent; a frame is one frame of the emulator."
            if everything
            else "--help-all lists all settings. After training: quantail report, eval, watch RUN."
        )
    parser.add_argument(
        "env",
        nargs="?",
        default=DEFAULT_ENV,
        metavar="ENV",
        help=f"CartPole-v1, ALE/Pong-v5, module:Id-v0, any Gymnasium id [{DEFAULT_ENV}]",
    )
    names = ", ".join(parts("preset"))
    shown_preset = (
        f"{names} or a .toml file" if everything else "base of all settings: a name or a .toml file"
    )
    parser.add_argument("--preset", metavar="NAME", help=f"{shown_preset} [the preset for ENV]")
    parser.add_argument("--out", metavar="DIR", help="folder of the run [a new folder in runs/]")
    hidden = None if everything else argparse.SUPPRESS
    parser.add_argument("--quiet", action="store_true", help=hidden or "print only the summary")
    add_trust(parser, "the .toml file", hidden=not everything)
    add_callbacks(parser, hidden=not everything)
    _add_settings(parser, composition, everything)
    return parser


def _add_settings(parser: Parser, composition: Composition | None, everything: bool) -> None:
    """Add an option for every setting."""
    groups: dict[str, Any] = {"first": parser.add_argument_group("settings that people change first")}
    known = flat_settings()
    for name in (*FIRST, *(one for one in known if one not in FIRST and one != "preset")):
        of = "first" if name in FIRST else known[name].group
        group = groups.setdefault(of, parser.add_argument_group(of) if everything else parser)
        default = known[name].default
        text = argparse.SUPPRESS
        if composition and (everything or name in FIRST):
            text = _help(name, composition, short=not everything)
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            action = argparse.BooleanOptionalAction
            group.add_argument(flag, dest=name, action=action, default=None, help=text)
        else:
            listed = "" if name in FIRST and not everything else "|".join(choices(name))
            group.add_argument(flag, dest=name, metavar=listed or METAVARS[type(default)], help=text)
    if composition and everything:
        _describe_dotted(parser, composition)


def _help(name: str, composition: Composition, *, short: bool = False) -> str:
    """Return the help of a setting: what it is, when it applies, its unit and source, and its value."""
    config = composition.config
    values = config.to_dict()
    value = values.get(name, flat_settings()[name].default if "." not in name else "")
    value = shown(label(name, value) if name in PARTS else value)
    if short:
        text = f"{FIRST[name]} [{value}]"
    else:
        condition = f", {condition}" if "." not in name and (condition := only_with(name)) else ""
        note = unit_and_source(config, name, composition.sources)
        text = f"{config.about(name).help}{condition}{f' ({note})' if note else ''} [{value}]"
    return text.strip().replace("%", "%%")


def _describe_dotted(parser: Parser, composition: Composition) -> None:
    """List the settings of parts from outside in the help; `split_dotted` reads their values."""
    for kind, part in composition.config.parts.items():
        own = {name: value for name, value in part.to_dict().items() if "." in name}
        if not own:
            continue
        group = parser.add_argument_group(f"{kind} {part.label}")
        for name, value in own.items():
            choice = composition.config.about(name).choices
            metavar = "|".join(choice) or METAVARS.get(type(value), "yes|no")
            group.add_argument(
                f"--{name.replace('_', '-')}", metavar=metavar, help=_help(name, composition)
            )
