"""quantail worlds [NAME]"""

from quantail.cli.parser import Parser
from quantail.cli.sheets import print_sheet
from quantail.envs.worlds import WORLDS, Solution, World, solve
from quantail.envs.worlds.tabular import State
from quantail.errors import QuantailError, did_you_mean
from quantail.evaluation.risk_profile import MEASURES
from quantail.evaluation.sheets import Sheet
from quantail.risk import CVaR, parse_risk

SHOWN = (*MEASURES, "norm:3")
NOTION = (
    "risk is the paper's: in each state the action with the best distorted value of the return from "
    "there on, the same being done ever after; it is not the risk of the whole episode from its start"
)


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail worlds",
        description="Small worlds whose return law and best policy are known exactly, under the mean "
        "and under any risk measure. They are Gymnasium environments: quantail train "
        "Quantail/WindyCliff-v0 --risk cvar:0.1",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="one of them, to see it solved")
    parser.add_argument(
        "--risk", action="append", metavar="R", help="under this measure [several of the paper's]"
    )
    arguments = parser.parse(words)
    if arguments.name is None:
        if arguments.risk:
            raise QuantailError("--risk takes the NAME of a world too.")
        rows = [[name, str(len(world().states)), world.about] for name, world in WORLDS.items()]
        print_sheet(Sheet("worlds", ["world", "states", "what it is"], rows))
        return 0
    world = _find(arguments.name)
    rows = []
    for risk in map(parse_risk, arguments.risk or SHOWN):
        solution = solve(world, risk)
        law = solution.law(world.states[0])
        figures = (law.value(risk), law.mean(), law.std(), law.value(CVaR(0.1)))
        way = " ".join(_way(world, solution))
        rows.append([str(risk), *(f"{figure:.3f}" for figure in figures), way])
    columns = ["risk", "its value", "mean", "deviation", "cvar:0.1", "likeliest way"]
    title = (
        f"{arguments.name}: the best policy under each measure, and its return (γ {world.discount:g})"
    )
    print_sheet(Sheet(title, columns, rows, [NOTION]))
    return 0


def _find(name: str) -> World:
    full = name if "/" in name else f"Quantail/{name.removesuffix('-v0')}-v0"
    if full not in WORLDS:
        known = ", ".join(WORLDS)
        raise QuantailError(f"unknown world {name!r}: it takes {known}.{did_you_mean(full, WORLDS)}")
    return WORLDS[full]()


def _way(world: World, solution: Solution) -> list[str]:
    """The actions of an episode in which the likeliest always happens."""
    state: State | None = world.states[0]
    taken = []
    while state is not None:
        action = solution.policy[state]
        taken.append(world.actions[action])
        state = max(world.outcomes(state, action), key=lambda outcome: outcome.chance).state
    return taken
