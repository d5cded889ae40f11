"""The tables of the page, as Markdown."""

from collections.abc import Sequence

import numpy as np

from quantail.evaluation.games import game_of, title_of
from quantail.evaluation.intervals import aggregate_intervals, improvement_interval, mean_intervals
from quantail.evaluation.scores import interquartile_mean, mean, probability_of_improvement
from tools.results.plan import Settings
from tools.results.sections import SHOWN, Section, published
from tools.results.table import RunRow

NONE = "–"


def name(env: str) -> str:
    """Return the name of a game."""
    return title_of(game_of(env)) if "/" in env else env.rpartition("-v")[0]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def score(rows: Sequence[RunRow]) -> str:
    """Return the mean over seeds, its interval from two seeds on, and the number of seeds."""
    if not rows:
        return NONE
    values = np.array([[row.mean] for row in rows])
    text = f"{values.mean():.1f}"
    if len(rows) > 1:
        low, high = mean_intervals(values)[:, 0]
        text += f" [{low:.1f}, {high:.1f}]"
    return f"{text} ({len(rows)})"


def scores(section: Section) -> str:
    """Return the scores of every agent in every game, and published ones below."""
    rows = [
        [agent, *(score(section.of(env, agent)) for env in section.envs)] for agent in section.agents
    ]
    random = [section.random(env) for env in section.envs]
    if any(np.isfinite(random)):
        rows.append(["random play", *(f"{r:.1f}" if np.isfinite(r) else NONE for r in random)])
    for frames in SHOWN:
        known = [[s for _, _, at, s in published(env) if at == frames] for env in section.envs]
        if all(known):
            label = f"*DQN of the MinAtar paper, {frames / 1e6:g}M frames*"
            rows.append([label, *(f"*{scores[0]:.1f}*" for scores in known)])
    return table(["agent", *map(name, section.envs)], rows)


def aggregates(section: Section) -> str:
    """Return IQM and mean of normalised scores; "" if no agent has all games or none is normalised."""
    rows = []
    for agent in section.agents:
        matrix = section.normalised(agent)
        if matrix is None:
            continue
        both = aggregate_intervals(matrix) if len(matrix) > 1 else {}
        rows.append(
            [
                agent,
                str(len(matrix)),
                _with_interval(interquartile_mean(matrix), both.get("iqm")),
                _with_interval(mean(matrix), both.get("mean")),
            ]
        )
    return table(["agent", "seeds", "interquartile mean", "mean"], rows) if rows else ""


def improvements(section: Section) -> tuple[str, list[str]]:
    """Return the probabilities that the row's agent beats the column's, and the clear cases in words."""
    found = {agent: section.matrix(agent) for agent in section.agents}
    known = {agent: matrix for agent, matrix in found.items() if matrix is not None and len(matrix) > 1}
    rows, clear = [], []
    for better, x in known.items():
        cells = [better]
        for worse, y in known.items():
            if better == worse:
                cells.append(NONE)
                continue
            chance, (low, high) = probability_of_improvement(x, y), improvement_interval(x, y)
            cells.append(_with_interval(chance, (low, high)))
            if low > 0.5:
                clear.append(f"`{better}` above `{worse}` ({chance:.2f}, {len(x)} and {len(y)} seeds)")
        rows.append(cells)
    return (table(["", *known], rows) if len(known) > 1 else ""), clear


def grid(section: Section) -> str:
    """Return the scores of every combination of a grid; two settings of one agent make a square."""
    axes = list(section.studies[0].grid)
    agents = section.agents
    if len(axes) == 2 and len(agents) == 1:
        return "\n\n".join(_square(section, env, agents[0]) for env in section.envs)
    many = [(env, agent) for env in section.envs for agent in agents]
    label = [f"{agent}, {name(env)}" if len(agents) > 1 else name(env) for env, agent in many]
    rows = [
        [_values(combination), *(score(section.of(env, agent, combination)) for env, agent in many)]
        for combination in section.combinations
    ]
    return table([", ".join(axes), *label], rows)


def best(section: Section, agent: str) -> tuple[Settings, list[float], int] | None:
    """Return the best combination, its mean in every game, and its number of runs.

    Games count equally: in each, the best mean is 1 and the worst 0, and the average over games decides.
    None unless every combination has all its runs.
    """
    means: dict[Settings, list[float]] = {}
    runs = 0
    for combination in section.combinations:
        rows = [section.of(env, agent, combination) for env in section.envs]
        wanted = [section.planned.get((env, agent, combination), 0) for env in section.envs]
        if [len(one) for one in rows] != wanted:
            return None
        means[combination] = [float(np.mean([row.mean for row in one])) for one in rows]
        runs = sum(wanted)
    found = np.array(list(means.values()))  # [combinations, games]
    low, high = found.min(axis=0), found.max(axis=0)
    shares = (found - low) / np.where(high > low, high - low, 1)
    top = list(means)[int(shares.mean(axis=1).argmax())]
    return top, means[top], runs


def _square(section: Section, env: str, agent: str) -> str:
    (down, firsts), (across, seconds) = section.studies[0].grid.items()
    rows = [
        [
            f"**{first}**",
            *(
                score(section.of(env, agent, ((down, str(first)), (across, str(second)))))
                for second in seconds
            ),
        ]
        for first in firsts
    ]
    return table([f"{name(env)}: {down} \\ {across}", *map(str, seconds)], rows)


def _values(combination: Settings) -> str:
    return ", ".join(value for _, value in combination)


def _with_interval(value: float, bounds: tuple[float, float] | None) -> str:
    return f"{value:.2f} [{bounds[0]:.2f}, {bounds[1]:.2f}]" if bounds else f"{value:.2f}"
