"""quantail calibrate RUN"""

import os
from pathlib import Path

from quantail.cli.parser import Parser, add_trust, whole
from quantail.cli.sheets import print_sheet
from quantail.errors import QuantailError
from quantail.evaluation.calibration import calibrate
from quantail.files import write_json
from quantail.training.train import load
from quantail.viewing.calibration import calibration_figure
from quantail.viewing.style import save_figure, styled


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail calibrate",
        description="Is the learned distribution true? Play episodes under the agent's own policy and "
        "compare the laws that it predicted at every step with the discounted returns that then came: "
        "coverage of the quantiles, where returns fall in their laws, how far apart they are, the "
        "tails, the order of the quantiles, and many continuations of single states. A figure is drawn, "
        "and all figures are kept as JSON.",
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--episodes", default="100", metavar="N", help="to play [100]")
    parser.add_argument("--states", default="4", metavar="N", help="to play on from many times [4]")
    parser.add_argument("--continuations", default="100", metavar="N", help="of each of them [100]")
    parser.add_argument("--risk", help="risk measure of the policy, as cvar:0.1 [the run's own]")
    parser.add_argument(
        "--checkpoint", metavar="last|best|N", default="last", help="which weights [last]"
    )
    parser.add_argument("--seed", default="1", metavar="S", help="seed of the episodes [1]")
    parser.add_argument("--out", metavar="STEM", help="STEM.png, .svg and .json [RUN/calibration]")
    add_trust(parser)
    arguments = parser.parse(words)
    episodes, states = whole("episodes", arguments.episodes, 2), whole("states", arguments.states, 0)
    continuations = whole("continuations", arguments.continuations, 2)
    seed = whole("seed", arguments.seed, 0)
    stem = Path(arguments.out or Path(arguments.run) / "calibration")
    agent = load(arguments.run, arguments.checkpoint, risk=arguments.risk, trust=arguments.trust)
    require_place(stem)
    found = calibrate(agent, episodes=episodes, states=states, continuations=continuations, seed=seed)
    print_sheet(found.sheet())
    if found.spots:
        print_sheet(found.spots_sheet())
    with styled():
        png, svg = save_figure(calibration_figure(found), stem)
    kept = png.with_suffix(".json")
    write_json(kept, found.to_dict() | {"run": arguments.run, "agent": agent.settings.agent})
    print(f"drawn as {png} and {svg}, figures in {kept}")
    return 0


def require_place(stem: Path) -> None:
    """Refuse a place where nothing can be written, before the play rather than after it."""
    folder = stem.parent
    if not stem.name or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise QuantailError(f"out takes STEM in a folder that can be written to, not {stem}.")
