"""quantail worlds [NAME]"""

from quantail.cli.parser import Parser
from quantail.cli.tables import print_table
from quantail.envs.worlds import WORLDS, Solution, World, solve
from quantail.envs.worlds.tabular import State
from quantail.errors import QuantailError
from quantail.evaluation.result_tables import ResultTable
from quantail.evaluation.risk_profile import MEASURES
from quantail.registration import NAMES, world_id
from quantail.risk import CVaR, RiskMeasure, parse_risk
from quantail.validation import one_of

Solutions = dict[RiskMeasure, Solution]

SHOWN = (*MEASURES, "norm:3")
TIE = 1e-9  # values closer than this are equal
NOTE = (
    "in each state the policy takes the action whose future return under the same policy has the best "
    "value, as in the paper; this does not optimise the risk measure of whole episodes"
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
    solutions = {
        risk: solve(world, risk) for risk in map(parse_risk, dict.fromkeys(arguments.risk or SHOWN))
    }
    print_table(_values_table(world, solutions))
    print_table(_actions_table(world, solutions))
    return 0


def _values_table(world: World, solutions: Solutions) -> ResultTable:
    """Return the return from the start under each risk measure, and the most likely actions."""
    rows = []
    for risk, solution in solutions.items():
        distribution = solution.distribution(world.states[0])
        figures = (
            risk.value(distribution),
            distribution.mean(),
            distribution.std(),
            CVaR(0.1).value(distribution),
        )
        paths = " | ".join(" ".join(one) for one in _likeliest_paths(world, solution, world.states[0]))
        rows.append([str(risk), *(f"{float(figure):.3f}" for figure in figures), paths])
    columns = ["risk measure", "value", "mean", "std", "cvar:0.1", "most likely actions"]
    title = f"{type(world).__name__}: the best policy under each risk measure (γ {world.discount:g})"
    return ResultTable(title, columns, rows, [NOTE])


def _actions_table(world: World, solutions: Solutions) -> ResultTable:
    """Return the best actions in every state with a choice, under each risk measure."""
    rows = [
        [
            world.describe(state),
            *(_best_actions(world, state, risk, one) for risk, one in solutions.items()),
        ]
        for state in world.states
        if len(world.distinct_actions(state)) > 1
    ]
    title = f"{type(world).__name__}: the best action in each state"
    notes = ["actions with an equals sign between them have the same value"]
    return ResultTable(title, ["state", *map(str, solutions)], rows, notes if "=" in str(rows) else [])


def _find(name: str) -> World:
    """Return the world with this name or id."""
    short = name.removeprefix("Quantail/").removesuffix("-v0")
    return WORLDS[world_id(one_of("world", short, NAMES))]()


def _best_actions(world: World, state: State, risk: RiskMeasure, solution: Solution) -> str:
    """Return the action with the highest value, or all of them if several are equally good."""
    values = {
        action: float(risk.value(solution.distributions[state, action]))
        for action in world.distinct_actions(state)
    }
    highest = max(values.values())
    best = [action for action, value in values.items() if value > highest - TIE]
    return " = ".join(world.actions[action] for action in best)


def _likeliest_paths(world: World, solution: Solution, state: State | None) -> list[list[str]]:
    """Return the choices of episodes in which the most likely outcome always happens.

    Next states that are equally likely give several episodes.
    """
    if state is None:
        return [[]]
    action = solution.policy[state]
    outcomes = world.outcomes(state, action)
    most = max(outcome.probability for outcome in outcomes)
    chosen = [world.actions[action]] if len(world.distinct_actions(state)) > 1 else []
    following = dict.fromkeys(one.state for one in outcomes if one.probability == most)
    return [
        [*chosen, *rest]
        for following_state in following
        for rest in _likeliest_paths(world, solution, following_state)
    ]
