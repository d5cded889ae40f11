"""The open questions: quantile temporal differences settle, and a world where three policies differ."""

from pathlib import Path

import numpy as np

from quantail.distributions import ReturnDistribution
from quantail.envs.worlds import WORLDS, World
from quantail.envs.worlds.exact import backup, follow
from tools.docs.figures._ideas import SMALL, Array, drawing

SWEEPS = 20_000


def draw(folder: Path, dark: bool) -> None:
    convergence(folder, dark)
    detour(folder, dark)


def fixed_point(count: int) -> dict[tuple[tuple[int, ...], int], ReturnDistribution]:
    """Return what evaluation followed by the quantile projection settles at: gambles in the chain."""
    world, taus = WORLDS["Quantail/Chain-v0"](), (np.arange(count) + 0.5) / count
    z: dict[tuple[tuple[int, ...], int], ReturnDistribution] = {}
    policy = dict.fromkeys(world.states, 1)
    for state in reversed(world.states):
        full = backup(world, state, 1, policy, z, world.discount)
        z[state, 1] = ReturnDistribution(full.quantile(taus))
    return z


def convergence(folder: Path, dark: bool) -> None:
    world = WORLDS["Quantail/Chain-v0"]()
    start, last = world.states[0], SWEEPS
    policy = dict.fromkeys(world.states, 1)
    exact = follow(world, policy).distribution(start)
    marks = np.unique(np.geomspace(10, last, 60).astype(int))
    with drawing(5.6, dark, folder, "ideas-qtd") as (figure, colours):
        top, bottom = figure.subplots(2, 1)
        settled = fixed_point(4)[start, 1]
        for seed in range(3):
            theta = _run(world, marks, seed)
            to_fixed = [float(ReturnDistribution.of(one).wasserstein(settled)) for one in theta]
            to_exact = [float(ReturnDistribution.of(one).wasserstein(exact)) for one in theta]
            first = seed == 0
            top.loglog(
                marks,
                to_fixed,
                color=colours.series[0],
                linewidth=1.2,
                label="to the fixed point" if first else None,
            )
            top.loglog(
                marks,
                to_exact,
                color=colours.series[1],
                linewidth=1.2,
                label="to the exact distribution" if first else None,
            )
        top.set_xlabel("sampled transitions per state")
        top.set_ylabel("W₁ distance")
        top.set_title("Quantile TD with 4 quantiles, 3 seeds: distance at the start")
        top.legend(loc="lower left")
        counts = [4, 8, 16, 32, 64, 128, 256, 512]
        errors = [float(fixed_point(count)[start, 1].wasserstein(exact)) for count in counts]
        bottom.loglog(counts, errors, "o-", color=colours.series[1], markersize=4)
        bottom.set_xticks(counts, [str(count) for count in counts])
        bottom.minorticks_off()
        bottom.set_xlabel("number of quantiles m")
        bottom.set_ylabel("W₁ distance")
        bottom.set_title("From the fixed point to the exact distribution")


def _run(world: World, marks: Array, seed: int) -> list[Array]:
    """Return the quantiles at the start after each number of sweeps in `marks`."""
    rng, taus = np.random.default_rng(seed), (np.arange(4) + 0.5) / 4
    outcomes = {state: world.outcomes(state, 1) for state in world.states}
    theta = {state: np.zeros(4) for state in world.states} | {None: np.zeros(1)}
    probabilities = [one.probability for one in world.outcomes(world.states[0], 1)]
    sampled = rng.choice(3, size=(marks[-1], len(world.states)), p=probabilities)
    kept = []
    for k in range(marks[-1]):
        for place, state in enumerate(world.states):
            outcome = outcomes[state][sampled[k, place]]
            targets = outcome.reward + world.discount * theta[outcome.state]
            below = (targets < theta[state][:, None]).mean(axis=1)
            theta[state] = theta[state] + 4 / (k + 1) ** 0.7 * (taus - below)
        if k + 1 in marks:
            kept.append(theta[world.states[0]])
    return kept


def detour(folder: Path, dark: bool) -> None:
    """The world with a highway, a side road, a bridge and a ferry."""
    with drawing(3.3, dark, folder, "ideas-detour") as (figure, colours):
        axes = figure.subplots()
        axes.set_xlim(0, 10)
        axes.set_ylim(0, 6.3)
        axes.axis("off")
        blue, orange, green, pink = colours.series[:4]

        def edge(start: tuple[float, float], end: tuple[float, float], colour: str, bend: float) -> None:
            arrow = {
                "arrowstyle": "-|>", "color": colour, "linewidth": 1.3, "shrinkA": 12, "shrinkB": 14,
                "connectionstyle": f"arc3,rad={bend}",
            }  # fmt: skip
            axes.annotate("", end, start, arrowprops=arrow)

        def node(at: tuple[float, float], text: str) -> None:
            box = {"boxstyle": "round,pad=0.35", "facecolor": colours.shade, "edgecolor": colours.quiet}
            axes.text(*at, text, ha="center", va="center", bbox=box, zorder=5)

        start, junction, arrived = (0.7, 2.9), (5.4, 2.4), (5.6, 5.7)
        edge(start, arrived, blue, 0.0)
        axes.text(2.6, 5.0, "highway, 75 %\n+5 and the end", color=blue, fontsize=SMALL, ha="right")
        edge(start, junction, blue, -0.25)
        axes.text(3.9, 3.5, "highway, 25 %: +1", color=blue, fontsize=SMALL, ha="center")
        edge(start, junction, orange, 0.25)
        axes.text(2.7, 1.25, "side road: +2", color=orange, fontsize=SMALL, ha="center")
        ends = [
            (4.6, green, "bridge, 75 %: +5"),
            (3.3, green, "bridge, 25 %: −4"),
            (1.7, pink, "ferry, 80 %: +3"),
            (0.4, pink, "ferry, 20 %: −5"),
        ]
        for height, colour, text in ends:
            edge((junction[0] + 0.3, junction[1]), (7.75, height), colour, 0.0)
            axes.text(7.5, height, text, va="center", color=colour, fontsize=SMALL)
        node(start, "start")
        node(junction, "junction")
        node(arrived, "arrived")
