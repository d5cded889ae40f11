"""quantail worlds [NAME]"""

from quantail.cli.parser import Parser
from quantail.cli.tables import print_table
from quantail.envs.worlds import WORLDS, Solution, World, solve
from quantail.envs.worlds.tabular import State
from quantail.errors import QuantailError
from quantail.evaluation.result_tables import ResultTable
from quantail.evaluation.risk_profile import MEASURES
from quantail.registration import NAMES, world_id
from quantail.risk import CVaR, parse_risk
from quantail.validation import one_of

SHOWN = (*MEASURES, "norm:3")
NOTE = (
    "the policy is that of the paper: in each state, the action with the best distorted value of the "
    "future return under the same policy; this is not the risk measure of whole episodes"
)


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail worlds",
        description="List the tabular worlds, for which the return distribution and the best policy "
        "under any risk measure are known exactly. They are Gymnasium environments: quantail train "
        "Quantail/WindyCliff-v0 --risk cvar:0.1",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="world to solve")
    parser.add_argument(
        "--risk",
        action="append",
        metavar="R",
        help="risk measure; can be repeated [several of the paper's]",
    )
    arguments = parser.parse(words)
    if arguments.name is None:
        if arguments.risk:
            raise QuantailError("--risk also needs the NAME of a world.")
        rows = [[name, str(len(world().states)), world.about] for name, world in WORLDS.items()]
        print_table(ResultTable("worlds", ["world", "states", "description"], rows))
        return 0
    world = _find(arguments.name)
    rows = []
    for risk in map(parse_risk, arguments.risk or SHOWN):
        solution = solve(world, risk)
        distribution = solution.distribution(world.states[0])
        figures = (
            risk.value(distribution),
            distribution.mean(),
            distribution.std(),
            CVaR(0.1).value(distribution),
        )
        path = " ".join(_likeliest_actions(world, solution))
        rows.append([str(risk), *(f"{float(figure):.3f}" for figure in figures), path])
    columns = ["risk measure", "value", "mean", "std", "cvar:0.1", "most likely actions"]
    title = f"{arguments.name}: the best policy under each risk measure (γ {world.discount:g})"
    print_table(ResultTable(title, columns, rows, [NOTE]))
    return 0


def _find(name: str) -> World:
    """Return the world with this name or id."""
    short = name.removeprefix("Quantail/").removesuffix("-v0")
    return WORLDS[world_id(one_of("world", short, NAMES))]()


def _likeliest_actions(world: World, solution: Solution) -> list[str]:
    """Return the actions of an episode in which the most likely outcome always happens."""
    state: State | None = world.states[0]
    taken = []
    while state is not None:
        action = solution.policy[state]
        taken.append(world.actions[action])
        state = max(world.outcomes(state, action), key=lambda outcome: outcome.probability).state
    return taken
