"""quantail calibrate RUN"""

import os
from pathlib import Path

from quantail.cli.parser import Parser, add_trust
from quantail.cli.tables import print_table
from quantail.errors import QuantailError
from quantail.evaluation.calibration import calibrate
from quantail.extras import require_extra
from quantail.files import write_json
from quantail.training.train import load
from quantail.validation import whole_number
from quantail.viewing.calibration import calibration_figure
from quantail.viewing.style import save_figure, styled


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail calibrate",
        description="Check the calibration of the learned return distributions. Plays episodes with the "
        "agent's own policy and compares the predicted distribution at every step with the measured "
        "discounted return: coverage of the quantiles, probability integral transform, distance, "
        "tails, quantile crossing, and repeated continuations from single states. Saves a figure as PNG "
        "and SVG and all numbers as JSON.",
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--episodes", default="100", metavar="N", help="number of episodes to play [100]"
    )
    parser.add_argument(
        "--states", default="4", metavar="N", help="number of states to continue from [4]"
    )
    parser.add_argument(
        "--continuations", default="100", metavar="N", help="continuations of each state [100]"
    )
    parser.add_argument("--risk", help="risk measure of the policy, such as cvar:0.1 [the run's own]")
    parser.add_argument(
        "--checkpoint", metavar="last|best|N", default="last", help="checkpoint to load [last]"
    )
    parser.add_argument("--seed", default="1", metavar="S", help="seed of the episodes [1]")
    parser.add_argument(
        "--out", metavar="STEM", help="write STEM.png, STEM.svg and STEM.json [RUN/calibration]"
    )
    add_trust(parser)
    arguments = parser.parse(words)
    episodes = whole_number("episodes", arguments.episodes, 2)
    states = whole_number("states", arguments.states, 0)
    continuations = whole_number("continuations", arguments.continuations, 2)
    seed = whole_number("seed", arguments.seed, 0)
    stem = Path(arguments.out or Path(arguments.run) / "calibration")
    agent = load(arguments.run, arguments.checkpoint, risk=arguments.risk, trust=arguments.trust)
    require_writable_stem(stem)
    require_extra("plots", "the figure of quantail calibrate")
    found = calibrate(agent, episodes=episodes, states=states, continuations=continuations, seed=seed)
    print_table(found.table())
    if found.probes:
        print_table(found.probes_table())
    with styled():
        png, svg = save_figure(calibration_figure(found), stem)
    data = png.with_suffix(".json")
    write_json(data, found.to_dict() | {"run": arguments.run, "agent": agent.config.run.agent})
    print(f"wrote the figure to {png} and {svg}, and the numbers to {data}")
    return 0


def require_writable_stem(stem: Path) -> None:
    """Raise an error if the output cannot be written, before any episode is played."""
    folder = stem.parent
    if not stem.name or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise QuantailError(f"out takes a path in a writable folder, without a suffix, not {stem}.")
