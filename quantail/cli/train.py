"""quantail train ENV. Every setting is an option; the defaults come from the environment's preset."""

import argparse
import sys
from typing import Any

from quantail.cli.parser import Parser, add_trust
from quantail.envs import default_preset
from quantail.recipes import PRESETS, compose, sources
from quantail.settings import ABOUT, only_with, shown, unit_and_source
from quantail.training.progress import reporter_for, told_how_to_resume
from quantail.training.train import train

DEFAULT_ENV = "MinAtar/Breakout-v1"
METAVARS = {int: "N", float: "X", str: "NAME", tuple: "N,N"}


USAGE = (
    "quantail train [ENV] [--agent iqn] [--risk neutral] [--preset NAME] [--steps N] [--seed S]\n"
    "                      [--num-envs E] [--out DIR] [--SETTING VALUE ...]"
)


def run(words: list[str]) -> int:
    # A first pass finds ENV, --preset and the settings given, which decide the other defaults.
    plain = [word for word in words if word not in ("-h", "--help")]
    first = _parser("small", "small", {}).parse(plain)
    fitting = default_preset(first.env)
    preset = first.preset or fitting
    given = {name: value for name, value in vars(first).items() if name in ABOUT and value is not None}
    arguments = vars(_parser(preset, fitting, given).parse(words))
    env, out, quiet = arguments.pop("env"), arguments.pop("out"), arguments.pop("quiet")
    trust = arguments.pop("trust")
    arguments.pop("preset")
    changes = {name: value for name, value in arguments.items() if value is not None}
    reporter = reporter_for(sys.stderr, quiet=quiet)
    with told_how_to_resume(reporter):
        train(env, preset=preset, out=out, reporter=reporter, trust=trust, **changes)
    return 130 if reporter.stopped else 0


def _parser(preset: str, fitting: str, given: dict[str, Any]) -> Parser:
    defaults = compose(preset, given, base=fitting)
    origins = sources(preset, given, base=fitting)
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
    names = ", ".join(PRESETS)
    parser.add_argument("--preset", metavar="NAME", help=f"{names} or a .toml file [the preset for ENV]")
    parser.add_argument("--out", metavar="DIR", help="folder of the run [a new folder in runs/]")
    parser.add_argument("--quiet", action="store_true", help="print only the summary")
    add_trust(parser, "the .toml file")
    groups: dict[str, Any] = {}
    for name, about in ABOUT.items():
        group = groups.setdefault(about.group, parser.add_argument_group(about.group))
        default = getattr(defaults, name)
        note = unit_and_source(name, origins)
        condition = f", {only_with(name)}" if about.only else ""
        text = f"{about.help}{condition} ({note}) [{shown(default)}]".replace("%", "%%")
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            group.add_argument(
                flag, dest=name, action=argparse.BooleanOptionalAction, default=None, help=text
            )
        else:
            metavar = "|".join(about.choices) or METAVARS[type(default)]
            group.add_argument(flag, dest=name, metavar=metavar, help=text)
    return parser
