"""The figures of a study, from its results on disk alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from quantail.experiments.folder import StudyFolder
from quantail.experiments.results import Array, Results, Trace, read_results
from quantail.experiments.scoring import Measure, Scale, early, late, scale_of, score
from quantail.experiments.study import Axis, Config
from quantail.experiments.tables import scores_csv, sheet_csv, sheets
from quantail.files import write_text
from quantail.registry import Trust
from quantail.risk import RiskMeasure, parse_risk
from quantail.training.progress import counted
from quantail.viewing.style import colour, count_axis, new_figure, save_figure, styled

Scores = dict[tuple[str, ...], float]  # by the places on each axis

SYMBOLS = {
    "online_samples": "N, samples of the prediction",
    "target_samples": "N′, samples of the target",
    "embedding": "embedding of τ",
    "embedding_size": "size of the embedding",
    "embedding_activation": "nonlinearity",
    "merge": "merge with the features",
    "policy_samples": "K, samples of the policy",
}
PARTIAL = "#b00020"
LABEL = 0.13  # height of a label beside a colour bar, as a share of it
PAPERS_OWN = ("norm:3",)  # in the paper's picture of distortions, though not among its policies


def draw_study(path: str | Path, trust: Trust = ()) -> list[Path]:
    """Draw every figure of the study at `path` as PNG and SVG, with its tables; what was written.

    `trust` are the modules that may be imported where study.json names them.
    """
    results, folder = read_results(path, trust), StudyFolder(path)
    folder.figures.mkdir(exist_ok=True)
    drawn: dict[str, Callable[[], Figure]] = {
        results.study.figure: lambda: DRAWN[results.study.figure](results)
    }
    if measures := _measures(results):
        drawn["distortions"] = lambda: distortions(measures)
    written = []
    with styled():
        for name, draw in drawn.items():
            save_figure(draw(), folder.figures / name)
            written += [folder.figures / f"{name}.png", folder.figures / f"{name}.svg"]
    tables = {name: sheet_csv(sheet) for name, sheet in sheets(results).items()}
    for name, text in {**tables, "scores": scores_csv(results)}.items():
        write_text(folder.figures / f"{name}.csv", text)
        written.append(folder.figures / f"{name}.csv")
    return written


# Two axes: a heat map


def heatmap(results: Results) -> Figure:
    """Scores over the two axes of the grid, early and late in training, references on the colour bar."""
    rows, columns = results.study.grid
    scale, window = scale_of(results), results.study.window
    figure = new_figure(8.6, 0.62 * len(rows.variants) + 1.9)
    panels = figure.subplots(1, 2)
    for axes, measure, when in (
        (panels[0], early(results), f"first {window:.0%} of training"),
        (panels[1], late(results), f"last {window:.0%} of training"),
    ):
        _heat(figure, axes, results, scale, measure, rows, columns)
        axes.set_title("\n".join([when, *_lacking(results, scale, measure)]))
    _titled(figure, results, f"{scale.name}; {_spoken(results)}")
    return figure


def _lacking(results: Results, scale: Scale, measure: Measure) -> list[str]:
    """The references that the colour bar has not, or not from all runs; nothing where it has all."""
    told = []
    for one in results.configs:
        if one.reference and not (found := score(results, scale, one, measure)).whole:
            absent = "not yet" if results.partial else "none"
            there = f"{found.runs} of {found.planned} runs" if found.runs else absent
            told.append(f"{one.label.upper()}: {there}")
    return [", ".join(told)] if told else []


def _heat(
    figure: Figure,
    axes: Axes,
    results: Results,
    scale: Scale,
    measure: Measure,
    rows: Axis,
    columns: Axis,
) -> None:
    grid = {one.places: score(results, scale, one, measure) for one in results.configs if one.places}
    beside = {
        one.label: score(results, scale, one, measure).value for one in results.configs if one.reference
    }
    table = np.array(
        [[grid[row.name, column.name].value for column in columns.variants] for row in rows.variants]
    )
    known = [*table[np.isfinite(table)], *(value for value in beside.values() if np.isfinite(value))]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    high = high if high > low else low + 1.0
    image = axes.imshow(table, cmap="viridis", vmin=low, vmax=high, aspect="auto", origin="lower")
    for y, row in enumerate(rows.variants):
        for x, column in enumerate(columns.variants):
            one = grid[row.name, column.name]
            bright = np.isfinite(one.value) and (one.value - low) / (high - low) > 0.6
            ink = "k" if bright or not one.runs else "w"
            absent = "not yet" if results.partial else "none"  # no evaluation in this part of training
            told = scale.text(one.value) if one.runs else absent
            if not one.whole:
                axes.add_patch(
                    Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, hatch="////", ec="0.6", lw=0)
                )
                told += f"\n{one.runs} of {one.planned} runs" if one.runs else ""
            plain = {} if one.runs else {"bbox": {"fc": "w", "ec": "none", "pad": 1.5}}
            style: dict[str, Any] = {"color": ink if one.runs else "0.4", **plain}
            axes.text(x, y, told, ha="center", va="center", fontsize=8, **style)
    axes.set_xticks(range(len(columns.variants)), [one.name for one in columns.variants])
    axes.set_yticks(range(len(rows.variants)), [one.name for one in rows.variants])
    axes.set_xlabel(_axis_label(columns))
    axes.set_ylabel(_axis_label(rows))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    ticks = FuncFormatter(lambda value, _: f"{value:g}%" if scale.percent else f"{value:g}")
    bar = figure.colorbar(image, ax=axes, pad=0.03, aspect=14, format=ticks)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_ticks_position("left")
    bar.ax.tick_params(labelsize=7, length=2)
    _mark(bar, {name: v for name, v in beside.items() if np.isfinite(v)}, scale, low, high)


def _mark(bar: Colorbar, values: dict[str, float], scale: Scale, low: float, high: float) -> None:
    """Lines on a colour bar, each with its name beside it, none over another."""
    ordered = sorted(values.items(), key=lambda item: item[1])
    for (name, value), placed in zip(ordered, _apart([v for _, v in ordered], low, high), strict=True):
        share = (value - low) / (high - low)
        bar.ax.axhline(value, color="w", lw=2.5)
        bar.ax.axhline(value, color=PARTIAL, lw=1.2)
        bar.ax.annotate(
            f"{name.upper()}\n{scale.text(value)}",
            xy=(1.0, share),
            xytext=(1.6, placed),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=7,
            color=PARTIAL,
            arrowprops={"arrowstyle": "-", "color": PARTIAL, "lw": 0.7},
        )


def _apart(values: Sequence[float], low: float, high: float) -> list[float]:
    """Heights for labels of rising values, as shares of the bar: near them, apart, and not above it."""
    places: list[float] = []
    for value in values:
        places.append(max((value - low) / (high - low), places[-1] + LABEL if places else 0.0))
    for index in reversed(range(len(places))):
        above = places[index + 1] - LABEL if index + 1 < len(places) else 0.97
        places[index] = min(places[index], above)
    return places


# Any axes: violins


def violins(results: Results) -> Figure:
    """Each choice marginal over the others: a dot is a combination, the black one the preferred."""
    study, scale, measure = results.study, scale_of(results), late(results)
    grid = [one for one in results.configs if one.places]
    scores = {one.places: score(results, scale, one, measure).value for one in grid}
    wanted = tuple(study.preferred.get(axis.name, "") for axis in study.grid)
    figure = new_figure(max(4.5, 2.1 * len(study.grid) + 0.6), 3.7)
    panels = figure.subplots(1, len(study.grid), sharey=True, squeeze=False)[0]
    for index, (axes, axis) in enumerate(zip(panels, study.grid, strict=True)):
        _violin(axes, axis, index, scores, wanted)
        for one in results.configs:
            value = score(results, scale, one, measure).value if one.reference else float("nan")
            if np.isfinite(value):
                axes.axhline(value, color="0.6", lw=1.5, zorder=0)
                if index == len(study.grid) - 1:
                    _at_right(axes, one.label.upper(), value)
    panels[0].set_ylabel(f"{scale.short}, last {study.window:.0%} of training")
    for axes, fill, word in ((panels[0], "w", "one combination"), (panels[0], "k", "the preferred one")):
        if fill == "w" or study.preferred:
            axes.scatter([], [], s=26, color=fill, edgecolor="k", lw=0.7, label=word)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    _titled(figure, results, f"each choice over all others; {scale.name}; {_spoken(results)}")
    return figure


def _violin(axes: Axes, axis: Axis, index: int, scores: Scores, wanted: tuple[str, ...]) -> None:
    for place, variant in enumerate(axis.variants):
        members = {one: v for one, v in scores.items() if one[index] == variant.name}
        there = {one: v for one, v in members.items() if np.isfinite(v)}
        values = np.array(list(there.values()))
        if len(values) > 1 and values.std() > 0:
            drawn: Any = axes.violinplot([values], [place], widths=0.85, showextrema=False)
            for body in drawn["bodies"]:
                body.set(facecolor=colour(place), alpha=0.35, edgecolor="none")
        order = sorted(there, key=lambda one: there[one])
        for rank, one in enumerate(order):
            chosen = one == wanted
            axes.scatter(
                place + 0.09 * ((rank % 3) - 1) * (not chosen),
                there[one],
                s=26,
                color="k" if chosen else "w",
                edgecolor="k",
                lw=0.7,
                zorder=4 if chosen else 3,
            )
    axes.set_xticks(range(len(axis.variants)), [one.name for one in axis.variants])
    axes.set_xlim(-0.6, len(axis.variants) - 0.4)
    axes.set_title(_axis_label(axis))


def _at_right(axes: Axes, text: str, value: float) -> None:
    axes.annotate(
        text,
        (1, value),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="bottom",
        color="0.45",
        fontsize=7,
    )


# Curves, a panel for each game


def curves(results: Results) -> Figure:
    """Mean return over training, a panel for each game; seeds are thin, the mean of those done thick."""
    games = results.study.games
    wide = min(3, len(games))
    tall = -(-len(games) // wide)
    figure = new_figure(max(5.2, 3.4 * wide), 2.5 * tall + 1.0)
    panels = figure.subplots(tall, wide, squeeze=False)
    for index, env in enumerate(games):
        axes = panels[index // wide, index % wide]
        _curve_panel(axes, results, env)
        axes.set_title(_game(env))
        if index % wide == 0:
            axes.set_ylabel("mean return of an evaluation")
    for index in range(len(games), wide * tall):
        panels[index // wide, index % wide].set_axis_off()
    for index, config in enumerate(results.configs):
        panels[0, 0].plot([], [], **_line(index, config), lw=1.8, label=config.label)
    figure.legend(loc="outside lower center", ncols=min(6, len(results.configs)), fontsize=8)
    _titled(figure, results, _spoken(results))
    return figure


def _curve_panel(axes: Axes, results: Results, env: str) -> None:
    repeat, random = 1, []
    for index, config in enumerate(results.configs):
        traces = [one for one in results.of(config, env) if len(one.steps)]
        random += [one.random for one in traces if np.isfinite(one.random)]
        for one in traces:
            repeat = one.job.settings.action_repeat
            if len(traces) > 1 or not one.done:
                axes.plot(one.steps, one.means, **_line(index, config), lw=0.5, alpha=0.4)
        if traces:
            # One seed under way does not cut the mean of those that are done.
            steps, means = common_points([one for one in traces if one.done] or traces)
            axes.plot(steps, means.mean(axis=0), **_line(index, config), lw=1.8)
    if random:
        axes.axhline(float(np.mean(random)), color="0.5", ls=":", lw=1)
        _at_right(axes, "random play", float(np.mean(random)))
    count_axis(axes, repeat)


def common_points(traces: Sequence[Trace]) -> tuple[Array, Array]:
    """Steps at which every run was evaluated, and the means there: [points], [runs, points]."""
    return _at_common_steps([(one.steps, one.means) for one in traces])


def _at_common_steps(lines: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Steps that all lines have, and their values there: [points], [lines, points]."""
    shared = set.intersection(*({float(s) for s in steps} for steps, _ in lines)) if lines else set()
    at = np.array(sorted(shared))
    values = [own[np.isin(steps, at)] for steps, own in lines]
    return at, np.array(values).reshape(len(lines), len(at))


# Mean and median over games


def aggregate(results: Results) -> Figure:
    """Mean and median over games, normalised; seeds are thin lines, the mean of whole ones thick."""
    scale, games = scale_of(results), len(results.study.games)
    figure = new_figure(8.6, 3.6)
    panels = figure.subplots(1, 2)
    repeat = results.traces[0].job.settings.action_repeat if results.traces else 1
    for axes, over, name in ((panels[0], np.mean, "mean"), (panels[1], np.median, "median")):
        shown: set[int] = set()
        for index, config in enumerate(results.configs):
            found = [_seed_line(results, scale, config, seed, over) for seed in range(config.seeds)]
            lines = [line for line in found if line]
            shown |= {line.games for line in lines}
            style, label = _line(index, config), _counted(lines, config, games)
            for line in lines:
                if len(lines) > 1 or not line.whole:
                    axes.plot(line.steps, line.values, **style, lw=0.6, alpha=0.5)
            if lines:
                whole = [line for line in lines if line.whole]
                steps, means = _at_common_steps([(line.steps, line.values) for line in whole])
                axes.plot(steps, means.mean(axis=0) if whole else [], **style, lw=1.8, label=label)
        axes.set_title(f"{name} over {_range_of_games(shown, games)}")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}%" if scale.percent else f"{value:g}")
        count_axis(axes, repeat)
    panels[0].set_ylabel(scale.short)
    if handles := panels[0].get_legend_handles_labels()[0]:
        figure.legend(
            handles=handles, loc="outside lower center", ncols=min(3, len(handles)), fontsize=8
        )
    _titled(figure, results, f"{scale.name}; {_spoken(results)}")
    return figure


@dataclass(frozen=True)
class SeedLine:
    """One seed's curve over its games."""

    steps: Array
    values: Array
    games: int  # that it rests on
    whole: bool  # whether these are all games of the study, each to its end


def _seed_line(
    results: Results, scale: Scale, config: Config, seed: int, over: Callable[..., Any]
) -> SeedLine | None:
    """Over the games that are done, so that none under way cuts it; before that, over those begun."""
    begun = [
        one
        for env in results.study.games
        for one in results.of(config, env)
        if one.job.seed == seed and len(one.steps)
    ]
    if not begun:
        return None
    done = [one for one in begun if one.done]
    traces = done or begun
    steps, means = common_points(traces)
    shown = [scale.of(one.job.env, row) for one, row in zip(traces, means, strict=True)]
    whole = len(done) == len(results.study.games)
    return SeedLine(steps, over(np.array(shown), axis=0), len(traces), whole)


def _counted(lines: Sequence[SeedLine], config: Config, games: int) -> str:
    """A combination's name, with how many of its seeds are whole and how many games the others have."""
    whole = sum(line.whole for line in lines)
    if whole == config.seeds:
        return f"{config.label} ({counted(whole, 'seed')})"
    told = f"{whole} of {counted(config.seeds, 'seed')} whole"
    if others := {line.games for line in lines if not line.whole}:
        told += f", thin: {_range_of_games(others, games)}"
    return f"{config.label} ({told})"


def _range_of_games(counts: set[int], games: int) -> str:
    """So many games, or from so few to so many of them."""
    if not counts or counts == {games}:
        return counted(games, "game")
    least, most = min(counts), max(counts)
    return f"{least if least == most else f'{least} to {most}'} of {counted(games, 'game')}"


# How risk measures reshape a distribution


def distortions(measures: Sequence[RiskMeasure]) -> Figure:
    """One distribution, and what each measure makes of it by sampling τ otherwise."""
    wide = min(4, len(measures))
    tall = -(-len(measures) // wide)
    figure = new_figure(2.3 * wide, 1.9 * tall + 0.7)
    panels = figure.subplots(tall, wide, sharex=True, squeeze=False)
    returns, base, levels = _example()
    below = [measure.inverse(torch.from_numpy(levels)).numpy() for measure in measures]
    densities = [np.gradient(one, returns) for one in below]
    for index, (measure, density) in enumerate(zip(measures, densities, strict=True)):
        axes = panels[index // wide, index % wide]
        axes.fill_between(returns, base, color="0.8", lw=0)
        mean = float(np.trapezoid(returns * density, returns) / np.trapezoid(density, returns))
        axes.fill_between(returns, density, color=colour(index), alpha=0.15, lw=0)
        axes.plot(returns, density, color=colour(index), lw=1.3)
        axes.axvline(mean, color=colour(index), lw=1, ls="--")
        axes.set_title(f"{measure}: mean {mean:.1f}")
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        # A height of its own: a sharp measure, as CVaR(0.1), would flatten all others.
        axes.set_ylim(0, 1.05 * max(float(density.max()), float(base.max())))
        if index + wide >= len(measures):
            axes.set_xlabel("return")
            axes.tick_params(labelbottom=True)
    for index in range(len(measures), wide * tall):
        panels[index // wide, index % wide].set_axis_off()
    figure.suptitle(
        "What a risk measure makes of one distribution of returns\n"
        "grey: the distribution itself, the same everywhere, though heights differ by panel\n"
        "line: as the measure samples it, dashed: its mean",
        fontsize=9,
        ha="left",
        x=0.02,
    )
    return figure


def _example() -> tuple[Array, Array, Array]:
    """Two bumps, a likely middling return and a less likely high one: returns, density, levels."""
    returns = np.linspace(-2.0, 16.0, 601)
    bumps = ((0.65, 4.0, 1.4), (0.35, 9.5, 1.6))
    density = sum(
        share * np.exp(-(((returns - centre) / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi))
        for share, centre, spread in bumps
    )
    levels = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(returns))])
    return returns, np.asarray(density), np.clip(levels / levels[-1], 0.0, 1.0)


def _measures(results: Results) -> list[RiskMeasure]:
    """The measures on the study's axis `risk`, and those that the paper draws besides."""
    axis = next((one for one in results.study.grid if one.name == "risk"), None)
    if axis is None:
        return []
    names = [str(one.settings.get("risk", "neutral")) for one in axis.variants]
    return [parse_risk(name, results.study.origin) for name in dict.fromkeys([*names, *PAPERS_OWN])]


# Shared


def _line(index: int, config: Config) -> dict[str, Any]:
    """A colour and a dash for each combination; references are grey."""
    if config.reference:
        return {"color": "0.45", "ls": ("--", ":", "-.")[index % 3]}
    return {"color": colour(index), "ls": ("-", "--", ":", "-.")[index // 7 % 4]}


def _titled(figure: Figure, results: Results, note: str) -> None:
    """The title, what is shown, and in red how much of it is there."""
    figure.suptitle(f"{results.study.title}\n{note}", fontsize=9, ha="left", x=0.02)
    if results.partial:
        figure.text(0.99, 0.99, results.partial.upper(), color=PARTIAL, fontsize=9, ha="right", va="top")


def _spoken(results: Results) -> str:
    games = ", ".join(_game(env) for env in results.study.games[:6])
    more = f" and {len(results.study.games) - 6} more" if len(results.study.games) > 6 else ""
    counts = sorted({one.seeds for one in results.configs})
    seeds = counted(counts[0], "seed") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    return f"{games}{more}; {seeds}"


def _game(env: str) -> str:
    return env.rpartition("/")[2].rpartition("-v")[0] or env


def _axis_label(axis: Axis) -> str:
    return SYMBOLS.get(axis.name, axis.name.replace("_", " "))


DRAWN: dict[str, Callable[[Results], Figure]] = {
    "heatmap": heatmap,
    "violins": violins,
    "curves": curves,
    "aggregate": aggregate,
}
