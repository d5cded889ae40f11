"""quantail eval RUN"""

import json

from rich.console import Console

from quantail.agents.agent import Agent
from quantail.cli.parser import Parser, add_trust
from quantail.cli.watching import evaluation_progress
from quantail.evaluation.evaluate import Evaluation, evaluate
from quantail.evaluation.protocols import about_protocols
from quantail.runs.results import results_folder, save_result
from quantail.text import counted
from quantail.training.train import load
from quantail.validation import probability, whole_number


def run(words: list[str]) -> int:
    about = about_protocols()
    parser = Parser(
        prog="quantail eval",
        description="Evaluate the agent of a run on whole episodes and print its raw scores. The same "
        "seed plays the same episodes. The result and its protocol are saved in RUN/results, where "
        "`quantail scores` and `quantail report` find them. Protocols: "
        + "; ".join(f"{name}, {text}" for name, text in about.items())
        + ".",
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--protocol", default="own", metavar="NAME", help=f"{', '.join(about)} [own, with 30 episodes]"
    )
    parser.add_argument("--episodes", metavar="N", help="number of episodes [the protocol's own]")
    parser.add_argument(
        "--frames", metavar="F", help="play whole episodes within this number of frames instead"
    )
    parser.add_argument(
        "--starts", metavar="FILE", help="recording with the start states, for human-starts"
    )
    parser.add_argument("--risk", help="risk measure of the policy, such as cvar:0.1 [the run's own]")
    parser.add_argument(
        "--checkpoint",
        metavar="last|best|N",
        help="checkpoint to load [best, or last if there is no best]",
    )
    parser.add_argument("--seed", default="1", metavar="S", help="seed of the episodes [1]")
    parser.add_argument(
        "--epsilon", metavar="E", help="probability of a random action [the protocol's own]"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    add_trust(parser)
    arguments = parser.parse(words)
    options = {
        "protocol": arguments.protocol,
        "episodes": _whole("episodes", arguments.episodes),
        "frames": _whole("frames", arguments.frames),
        "seed": whole_number("seed", arguments.seed, 0),
        "epsilon": None if arguments.epsilon is None else probability("epsilon", arguments.epsilon),
        "starts": arguments.starts,
    }
    agent = load(arguments.run, arguments.checkpoint, risk=arguments.risk, trust=arguments.trust)
    results_folder(arguments.run)  # fail before hours of play rather than after
    with evaluation_progress() as watch:
        result = evaluate(agent, watch=watch, **options)
    if arguments.json:
        source = {"run": arguments.run, "agent": agent.config.run.agent, "checkpoint": agent.checkpoint}
        print(json.dumps(result.to_dict() | source))
    else:
        Console(soft_wrap=True).print(_table(result, agent), highlight=False, markup=False)
        if agent.network.head.mean_only and arguments.risk:
            print(f"  {agent.config.run.agent} learns only the mean, so all risk measures act the same")
    path = save_result(arguments.run, agent, result)
    if not arguments.json:
        print(f"  saved to  {path}")
    return 0


def _whole(name: str, text: str | None) -> int | None:
    return None if text is None else whole_number(name, text, 1)


def _table(result: Evaluation, agent: Agent) -> str:
    row = result.to_dict()
    return (
        f"{result.env}: mean return {row['mean']:.2f} over {counted(row['episodes'], 'episode')} "
        f"(standard deviation {row['std']:.2f})\n"
        f"  lowest {row['min']:g}, quartiles {row['q25']:g}, {row['median']:g} and {row['q75']:g}, "
        f"highest {row['max']:g}; {result.lengths.mean():.0f} steps an episode\n"
        f"  mean of the worst quarter {result.value('cvar:0.25'):g} (cvar:0.25), "
        f"of the worst tenth {result.value('cvar:0.1'):g} (cvar:0.1)\n"
        f"  agent     {agent.config.run.agent} after {counted(agent.checkpoint, 'step')}, "
        f"risk measure {result.risk.label}\n"
        f"  protocol  {result.protocol.describe()}, seed {result.seed}"
    )
