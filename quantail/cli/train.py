"""quantail train ENV. Every setting is an option; the defaults come from the environment's preset."""

import argparse
from typing import Any

from quantail.cli.parser import Parser, add_trust
from quantail.envs import find_family
from quantail.errors import QuantailError
from quantail.fields import about_of, shown
from quantail.recipes import compose, preset_file, sources
from quantail.registry import label, own_fields, parts
from quantail.settings import (
    ABOUT,
    PARTS,
    RISKS,
    Settings,
    choices,
    is_dotted,
    only_with,
    unit_and_source,
)
from quantail.training.loggers.terminal import ProgressBar, suppress_saved_interrupt
from quantail.training.train import train
from quantail.trust import Origin, origin_of

DEFAULT_ENV = "MinAtar/Breakout-v1"
METAVARS = {int: "N", float: "X", str: "NAME", tuple: "N,N", bool: "yes|no"}


USAGE = (
    "quantail train [ENV] [--agent iqn] [--risk neutral] [--preset NAME] [--steps N] [--seed S]\n"
    "                      [--num-envs E] [--out DIR] [--SETTING VALUE ...]"
)


def run(words: list[str]) -> int:
    # A first pass finds ENV, --preset and the settings given, which decide the other defaults.
    words, dotted = split_dotted(words)
    plain = [word for word in words if word not in ("-h", "--help")]
    first = _parser("small", "small", {}, None).parse(plain)
    fitting = find_family(first.env).preset
    preset = first.preset or fitting
    given = {name: value for name, value in vars(first).items() if name in ABOUT and value is not None}
    given |= dotted
    named = [first.env, *(given.get(name) for name in (*RISKS, *PARTS))]
    origin = origin_of(preset, first.trust, *named) if preset_file(preset) else None
    arguments = vars(_parser(preset, fitting, given, origin).parse(words))
    env, out, quiet = arguments.pop("env"), arguments.pop("out"), arguments.pop("quiet")
    trust = arguments.pop("trust")
    arguments.pop("preset")
    changes = {name: value for name, value in arguments.items() if value is not None} | dotted
    bar = ProgressBar(quiet=quiet)
    with suppress_saved_interrupt(bar):
        train(env, preset=preset, out=out, callbacks=[bar], trust=trust, **changes)
    return 130 if bar.stopped else 0


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


def _parser(preset: str, fitting: str, given: dict[str, Any], origin: Origin | None) -> Parser:
    defaults = compose(preset, given, fitting, origin)
    origins = sources(preset, given, fitting, origin)
    parser = Parser(
        prog="quantail train",
        usage=USAGE,
        description=f"Train an agent. The defaults in brackets are those of agent {defaults.agent} with "
        f"preset {preset} and the given options; the unit and the source of each value precede them.",
        epilog="A step is one decision of the agent; a frame is one frame of the emulator.",
    )
    parser.add_argument(
        "env",
        nargs="?",
        default=DEFAULT_ENV,
        metavar="ENV",
        help="Gymnasium environment id: CartPole-v1, MinAtar/Breakout-v1, ALE/Pong-v5, "
        f"module:Id-v0 [{DEFAULT_ENV}]",
    )
    names = ", ".join(parts("preset"))
    parser.add_argument("--preset", metavar="NAME", help=f"{names} or a .toml file [the preset for ENV]")
    parser.add_argument("--out", metavar="DIR", help="folder of the run [a new folder in runs/]")
    parser.add_argument("--quiet", action="store_true", help="print only the summary")
    add_trust(parser, "the .toml file")
    groups: dict[str, Any] = {}
    for name, about in ABOUT.items():
        group = groups.setdefault(about.group, parser.add_argument_group(about.group))
        default = getattr(defaults, name)
        value = label(name, default) if name in PARTS else default
        note = unit_and_source(name, origins)
        condition = f", {condition}" if (condition := only_with(name)) else ""
        text = f"{about.help}{condition} ({note}) [{shown(value)}]".replace("%", "%%")
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            group.add_argument(
                flag, dest=name, action=argparse.BooleanOptionalAction, default=None, help=text
            )
        else:
            metavar = "|".join(choices(name)) or METAVARS[type(default)]
            group.add_argument(flag, dest=name, metavar=metavar, help=text)
    _describe_dotted(parser, defaults, origins)
    return parser


def _describe_dotted(parser: Parser, settings: Settings, origins: dict[str, str]) -> None:
    """List the settings of parts from outside in the help; `split_dotted` reads their values."""
    for kind in PARTS:
        name = getattr(settings, kind)
        if not (own := own_fields(kind, name)):
            continue
        group = parser.add_argument_group(f"{kind} {label(kind, name)}")
        for one, field in own.items():
            about, value = about_of(field), settings.dotted[f"{kind}.{one}"]
            note = "; ".join(filter(None, (about.unit, origins.get(f"{kind}.{one}", about.source))))
            words = [about.help, f"({note})" if note else "", f"[{shown(value)}]"]
            text = " ".join(filter(None, words)).replace("%", "%%")
            metavar = "|".join(about.choices) or METAVARS[type(value)]
            group.add_argument(f"--{kind}.{one.replace('_', '-')}", metavar=metavar, help=text)
