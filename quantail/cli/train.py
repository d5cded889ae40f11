"""quantail train ENV: every setting is a flag; the defaults are those of the environment's preset."""

import argparse
import sys
from typing import Any

from quantail.cli.parser import Parser
from quantail.recipes import PRESETS, compose
from quantail.settings import ABOUT, Settings
from quantail.training.progress import reporter_for
from quantail.training.train import default_preset, train

DEFAULT_ENV = "MinAtar/Breakout-v1"


def run(words: list[str]) -> int:
    chosen = _first_look(words)
    wants_help = "-h" in words or "--help" in words
    preset = chosen.preset or default_preset(chosen.env)
    arguments = vars(_parser(compose(preset, {}), preset).parse(words))
    env, out, quiet = arguments.pop("env"), arguments.pop("out"), arguments.pop("quiet")
    arguments.pop("preset")
    changes = {name: value for name, value in arguments.items() if value is not None}
    assert not wants_help
    reporter = reporter_for(sys.stderr, quiet=quiet)
    train(env, preset=preset, out=out, reporter=reporter, **changes)
    return reporter.status


def _first_look(words: list[str]) -> argparse.Namespace:
    """ENV and --preset, which decide what the other flags default to."""
    parser = _parser(Settings(), "")
    return parser.parse([word for word in words if word not in ("-h", "--help")])


def _parser(defaults: Settings, preset: str) -> Parser:
    parser = Parser(
        prog="quantail train",
        description="Train an agent. Defaults below are those of "
        + (f"preset {preset}, which fits the environment named." if preset else "the preset."),
        epilog="A step is one decision of the agent, a frame one of the emulator's. "
        "(unit; source of the value) stand behind each setting.",
    )
    parser.add_argument(
        "env",
        nargs="?",
        default=DEFAULT_ENV,
        metavar="ENV",
        help="id of a Gymnasium environment: CartPole-v1, MinAtar/Breakout-v1, ALE/Pong-v5, "
        f"module:Id-v0 (default: {DEFAULT_ENV})",
    )
    names = ", ".join(PRESETS)
    parser.add_argument("--preset", help=f"{names} or a .toml file (default: what fits ENV)")
    parser.add_argument("--out", metavar="DIR", help="folder of the run (default: a free name in runs/)")
    parser.add_argument("--quiet", action="store_true", help="show only the summary")
    groups: dict[str, Any] = {}
    for name, about in ABOUT.items():
        group = groups.setdefault(about.group, parser.add_argument_group(about.group))
        default = getattr(defaults, name)
        note = "; ".join(part for part in (about.unit, about.source) if part)
        text = f"{about.help} ({note}) [{_shown(default)}]".replace("%", "%%")
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            group.add_argument(
                flag, dest=name, action=argparse.BooleanOptionalAction, default=None, help=text
            )
        else:
            metavar = "|".join(about.choices) if about.choices else "VALUE"
            group.add_argument(flag, dest=name, metavar=metavar, help=text)
    return parser


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else value
    )
