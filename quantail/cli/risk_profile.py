"""quantail risk-profile RUN"""

import json

from quantail.cli.parser import Parser, add_trust
from quantail.cli.tables import print_table
from quantail.evaluation.risk_profile import MEASURES, risk_profile
from quantail.training.train import load
from quantail.validation import number, whole_number


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail risk-profile",
        description="Play whole episodes with the agent of a run under several risk measures, and print "
        "the mean, VaR and CVaR of the episode returns with bootstrap intervals.",
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--risk",
        action="append",
        metavar="R",
        help=f"risk measure; can be repeated [{', '.join(MEASURES)}]",
    )
    parser.add_argument(
        "--episodes", default="200", metavar="N", help="episodes under each measure [200]"
    )
    parser.add_argument(
        "--level",
        default="0.1",
        metavar="A",
        help="level of VaR and CVaR: the worst share of episodes [0.1]",
    )
    parser.add_argument("--seed", default="1", metavar="S", help="seed of the episodes [1]")
    parser.add_argument("--checkpoint", metavar="last|best|N", help="checkpoint to load [best, or last]")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    add_trust(parser)
    arguments = parser.parse(words)
    episodes = whole_number("episodes", arguments.episodes, 2)
    seed = whole_number("seed", arguments.seed, 0)
    level = number("level", arguments.level, above=0, most=1)
    agent = load(arguments.run, arguments.checkpoint, trust=arguments.trust)
    risks = arguments.risk or MEASURES
    profile = risk_profile(agent, risks, episodes=episodes, level=level, seed=seed)
    if arguments.json:
        print(json.dumps(profile.to_dict() | {"run": arguments.run}))
        return 0
    print_table(profile.table())
    if agent.network.head.mean_only:
        print(f"{agent.config.run.agent} learns only the mean, so all risk measures act the same")
    return 0
