"""The figures of a study, drawn from its results on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from quantail.experiments.folder import StudyFolder
from quantail.experiments.results import Array, Results, Trace, read_results
from quantail.experiments.scoring import Measure, Scale, early, late, scale_of, score
from quantail.experiments.study import Axis, Config
from quantail.experiments.tables import scores_csv, table_csv, tables
from quantail.extras import require_extra
from quantail.files import write_text
from quantail.risk import RiskMeasure, parse_risk
from quantail.text import counted
from quantail.trust import Trust
from quantail.viewing.style import colour, count_axis, new_figure, save_figure, spread_labels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure

Scores = dict[tuple[str, ...], float]  # by the variant on each axis

SYMBOLS = {
    "online_samples": "N, online samples of τ",
    "target_samples": "N′, target samples of τ",
    "embedding": "embedding of τ",
    "embedding_size": "size of the embedding",
    "embedding_activation": "nonlinearity",
    "merge": "merge with the features",
    "policy_samples": "K, policy samples of τ",
}
WARNING = "#b00020"
LABEL_HEIGHT = 0.13  # of a label beside a colour bar, as a share of the bar
LABELLED = (-0.06, 1.04)  # range for labels beside a colour bar, as shares of the bar
PAPER_MEASURES = ("norm:3",)  # drawn in the paper's figure of distortions, but not used for a policy


def draw_study(path: str | Path, trust: Trust = ()) -> list[Path]:
    """Draw every figure of the study at `path` as PNG and SVG, write its tables, and return all paths.

    `trust` lists the modules that may be imported if study.json names them.
    """
    require_extra("plots", "a figure")  # before anything is written
    results, folder = read_results(path, trust), StudyFolder(path)
    folder.figures.mkdir(exist_ok=True)
    figures: dict[str, Callable[[], Figure]] = {
        results.study.figure: lambda: FIGURES[results.study.figure](results)
    }
    if measures := _measures(results):
        figures["distortions"] = lambda: distortions(measures)
    written = []
    with styled():
        for name, draw in figures.items():
            save_figure(draw(), folder.figures / name)
            written += [folder.figures / f"{name}.png", folder.figures / f"{name}.svg"]
    texts = {name: table_csv(table) for name, table in tables(results).items()}
    for name, text in {**texts, "scores": scores_csv(results)}.items():
        write_text(folder.figures / f"{name}.csv", text)
        written.append(folder.figures / f"{name}.csv")
    return written


# Two axes: a heat map


def heatmap(results: Results) -> Figure:
    """Draw scores over the two axes of the grid, early and late in training.

    Reference agents are marked on the colour bar.
    """
    rows, columns = results.study.grid
    scale, window = scale_of(results), results.study.window
    figure = new_figure(8.6, 0.62 * len(rows.variants) + 1.9)
    panels = figure.subplots(1, 2)
    for axes, measure, when in (
        (panels[0], early(results), f"first {window:.0%} of training"),
        (panels[1], late(results), f"last {window:.0%} of training"),
    ):
        _heat(figure, axes, results, scale, measure, rows, columns)
        axes.set_title("\n".join([when, *_missing_references(results, scale, measure)]))
    _set_title(figure, results, f"{scale.name}; {_games_and_seeds(results)}")
    return figure


def _missing_references(results: Results, scale: Scale, measure: Measure) -> list[str]:
    """Return a line on references that have no score yet, or not from all runs; empty if none."""
    missing = []
    for one in results.configs:
        if one.reference and not (found := score(results, scale, one, measure)).complete:
            absent = "not yet" if results.partial else "none"
            known = f"{found.runs} of {found.planned} runs" if found.runs else absent
            missing.append(f"{one.label.upper()}: {known}")
    return [", ".join(missing)] if missing else []


def _heat(
    figure: Figure,
    axes: Axes,
    results: Results,
    scale: Scale,
    measure: Measure,
    rows: Axis,
    columns: Axis,
) -> None:
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import FuncFormatter

    grid = {one.places: score(results, scale, one, measure) for one in results.configs if one.places}
    references = {
        one.label: score(results, scale, one, measure).value for one in results.configs if one.reference
    }
    table = np.array(
        [[grid[row.name, column.name].value for column in columns.variants] for row in rows.variants]
    )
    known = [*table[np.isfinite(table)], *(value for value in references.values() if np.isfinite(value))]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    high = high if high > low else low + 1.0
    image = axes.imshow(table, cmap="viridis", vmin=low, vmax=high, aspect="auto", origin="lower")
    for y, row in enumerate(rows.variants):
        for x, column in enumerate(columns.variants):
            one = grid[row.name, column.name]
            bright = np.isfinite(one.value) and (one.value - low) / (high - low) > 0.6
            ink = "k" if bright or not one.runs else "w"
            absent = (
                "not yet" if results.partial else "none"
            )  # there is no evaluation in this part of training
            text = scale.text(one.value) if one.runs else absent
            if not one.complete:
                axes.add_patch(
                    Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, hatch="////", ec="0.6", lw=0)
                )
                text += f"\n{one.runs} of {one.planned} runs" if one.runs else ""
            plain = {} if one.runs else {"bbox": {"fc": "w", "ec": "none", "pad": 1.5}}
            style: dict[str, Any] = {"color": ink if one.runs else "0.4", **plain}
            axes.text(x, y, text, ha="center", va="center", fontsize=8, **style)
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
    _mark(bar, {name: v for name, v in references.items() if np.isfinite(v)}, scale, low, high)


def _mark(bar: Colorbar, values: dict[str, float], scale: Scale, low: float, high: float) -> None:
    """Mark values on a colour bar, with labels that do not overlap."""
    shares = [(value - low) / (high - low) for value in values.values()]
    places = spread_labels(shares, LABEL_HEIGHT, *LABELLED)
    for (name, value), share, placed in zip(values.items(), shares, places, strict=True):
        bar.ax.axhline(value, color="w", lw=2.5)
        bar.ax.axhline(value, color=WARNING, lw=1.2)
        bar.ax.annotate(
            f"{name.upper()}\n{scale.text(value)}",
            xy=(1.0, share),
            xytext=(1.6, placed),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=7,
            color=WARNING,
            arrowprops={"arrowstyle": "-", "color": WARNING, "lw": 0.7},
        )


# Any axes: violins


def violins(results: Results) -> Figure:
    """Draw the scores of each choice over all others; each dot is a combination, the preferred black."""
    study, scale, measure = results.study, scale_of(results), late(results)
    grid = [one for one in results.configs if one.places]
    scores = {one.places: score(results, scale, one, measure).value for one in grid}
    preferred = tuple(study.preferred.get(axis.name, "") for axis in study.grid)
    figure = new_figure(max(4.5, 2.1 * len(study.grid) + 0.6), 3.7)
    panels = figure.subplots(1, len(study.grid), sharey=True, squeeze=False)[0]
    for index, (axes, axis) in enumerate(zip(panels, study.grid, strict=True)):
        _violin(axes, axis, index, scores, preferred)
        for one in results.configs:
            value = score(results, scale, one, measure).value if one.reference else float("nan")
            if np.isfinite(value):
                axes.axhline(value, color="0.6", lw=1.5, zorder=0)
                if index == len(study.grid) - 1:
                    _at_right(axes, one.label.upper(), value)
    panels[0].set_ylabel(f"{scale.short}, last {study.window:.0%} of training")
    for axes, fill, word in (
        (panels[0], "w", "one combination"),
        (panels[0], "k", "preferred combination"),
    ):
        if fill == "w" or study.preferred:
            axes.scatter([], [], s=26, color=fill, edgecolor="k", lw=0.7, label=word)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    _set_title(
        figure,
        results,
        f"each choice, over all combinations of the others; {scale.name}; {_games_and_seeds(results)}",
    )
    return figure


def _violin(axes: Axes, axis: Axis, index: int, scores: Scores, preferred: tuple[str, ...]) -> None:
    for position, variant in enumerate(axis.variants):
        members = {one: v for one, v in scores.items() if one[index] == variant.name}
        scored = {one: v for one, v in members.items() if np.isfinite(v)}
        values = np.array(list(scored.values()))
        if len(values) > 1 and values.std() > 0:
            drawn: Any = axes.violinplot([values], [position], widths=0.85, showextrema=False)
            for body in drawn["bodies"]:
                body.set(facecolor=colour(position), alpha=0.35, edgecolor="none")
        order = sorted(scored, key=lambda one: scored[one])
        for rank, one in enumerate(order):
            chosen = one == preferred
            axes.scatter(
                position + 0.09 * ((rank % 3) - 1) * (not chosen),
                scored[one],
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
    """Draw the mean return over training, one panel per game.

    Thin lines are seeds, and the thick line is the mean of the finished seeds.
    """
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
            axes.set_ylabel("mean evaluation return")
    for index in range(len(games), wide * tall):
        panels[index // wide, index % wide].set_axis_off()
    for index, config in enumerate(results.configs):
        panels[0, 0].plot([], [], **_line(index, config), lw=1.8, label=config.label)
    figure.legend(loc="outside lower center", ncols=min(6, len(results.configs)), fontsize=8)
    _set_title(figure, results, _games_and_seeds(results))
    return figure


def _curve_panel(axes: Axes, results: Results, env: str) -> None:
    repeat, random = 1, []
    for index, config in enumerate(results.configs):
        traces = [one for one in results.of(config, env) if len(one.steps)]
        random += [one.random for one in traces if np.isfinite(one.random)]
        for one in traces:
            repeat = one.job.frames_per_step
            if len(traces) > 1 or not one.done:
                axes.plot(one.steps, one.means, **_line(index, config), lw=0.5, alpha=0.4)
        if traces:
            # A seed in progress does not shorten the mean of the finished ones.
            steps, means = common_points([one for one in traces if one.done] or traces)
            axes.plot(steps, means.mean(axis=0), **_line(index, config), lw=1.8)
    if random:
        axes.axhline(float(np.mean(random)), color="0.5", ls=":", lw=1)
        _at_right(axes, "random play", float(np.mean(random)))
    count_axis(axes, repeat)


def common_points(traces: Sequence[Trace]) -> tuple[Array, Array]:
    """Return the steps at which every run was evaluated, and the means: [points], [runs, points]."""
    return _at_common_steps([(one.steps, one.means) for one in traces])


def _at_common_steps(lines: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the steps that all lines share, and their values: [points], [lines, points]."""
    shared = set.intersection(*({float(s) for s in steps} for steps, _ in lines)) if lines else set()
    at = np.array(sorted(shared))
    values = [own[np.isin(steps, at)] for steps, own in lines]
    return at, np.array(values).reshape(len(lines), len(at))


# Mean and median over games


def aggregate(results: Results) -> Figure:
    """Draw the mean and the median over games of normalised scores.

    Thin lines are seeds, and the thick line is the mean of the seeds that have finished all games.
    """
    scale, games = scale_of(results), len(results.study.games)
    figure = new_figure(8.6, 3.6)
    panels = figure.subplots(1, 2)
    repeat = results.traces[0].job.frames_per_step if results.traces else 1
    for axes, over, name in ((panels[0], np.mean, "mean"), (panels[1], np.median, "median")):
        shown: set[int] = set()
        for index, config in enumerate(results.configs):
            found = [_seed_line(results, scale, config, seed, over) for seed in range(config.seeds)]
            lines = [line for line in found if line]
            shown |= {line.games for line in lines}
            style, label = _line(index, config), _legend_label(lines, config, games)
            for line in lines:
                if len(lines) > 1 or not line.complete:
                    axes.plot(line.steps, line.values, **style, lw=0.6, alpha=0.5)
            if lines:
                complete = [line for line in lines if line.complete]
                steps, means = _at_common_steps([(line.steps, line.values) for line in complete])
                axes.plot(steps, means.mean(axis=0) if complete else [], **style, lw=1.8, label=label)
        axes.set_title(f"{name} over {_range_of_games(shown, games)}")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}%" if scale.percent else f"{value:g}")
        count_axis(axes, repeat)
    panels[0].set_ylabel(scale.short)
    if handles := panels[0].get_legend_handles_labels()[0]:
        figure.legend(
            handles=handles, loc="outside lower center", ncols=min(3, len(handles)), fontsize=8
        )
    _set_title(figure, results, f"{scale.name}; {_games_and_seeds(results)}")
    return figure


@dataclass(frozen=True)
class SeedLine:
    """The curve of one seed, aggregated over its games."""

    steps: Array
    values: Array
    games: int  # number of games in the curve
    complete: bool  # whether all games of the study are finished


def _seed_line(
    results: Results, scale: Scale, config: Config, seed: int, over: Callable[..., Any]
) -> SeedLine | None:
    """Aggregate one seed over its finished games; if there is none yet, over those in progress."""
    started = [
        one
        for env in results.study.games
        for one in results.of(config, env)
        if one.job.seed == seed and len(one.steps)
    ]
    if not started:
        return None
    done = [one for one in started if one.done]
    traces = done or started
    steps, means = common_points(traces)
    shown = [scale.of(one.job.env, row) for one, row in zip(traces, means, strict=True)]
    complete = len(done) == len(results.study.games)
    return SeedLine(steps, over(np.array(shown), axis=0), len(traces), complete)


def _legend_label(lines: Sequence[SeedLine], config: Config, games: int) -> str:
    """Return the name of a combination, with the number of complete seeds and games."""
    complete = sum(line.complete for line in lines)
    if complete == config.seeds:
        return f"{config.label} ({counted(complete, 'seed')})"
    text = f"{complete} of {counted(config.seeds, 'seed')} complete"
    if others := {line.games for line in lines if not line.complete}:
        text += f", thin: {_range_of_games(others, games)}"
    return f"{config.label} ({text})"


def _range_of_games(counts: set[int], games: int) -> str:
    """Describe the number of games, or its range."""
    if not counts or counts == {games}:
        return counted(games, "game")
    least, most = min(counts), max(counts)
    return f"{least if least == most else f'{least} to {most}'} of {counted(games, 'game')}"


# Distortion of a distribution by risk measures


def distortions(measures: Sequence[RiskMeasure]) -> Figure:
    """Draw an example distribution, and its distortion under each risk measure."""
    wide = min(4, len(measures))
    tall = -(-len(measures) // wide)
    figure = new_figure(2.3 * wide, 1.9 * tall + 0.7)
    panels = figure.subplots(tall, wide, sharex=True, squeeze=False)
    returns, base, cdf = _example()
    weights = [measure.tau_weights(torch.from_numpy(cdf)) for measure in measures]
    measures = [one for one, found in zip(measures, weights, strict=True) if found is not None]
    distorted = [np.cumsum([0.0, *found.tolist()]) for found in weights if found is not None]
    densities = [np.gradient(one, returns) for one in distorted]
    for index, (measure, density) in enumerate(zip(measures, densities, strict=True)):
        axes = panels[index // wide, index % wide]
        axes.fill_between(returns, base, color="0.8", lw=0)
        mean = float(np.trapezoid(returns * density, returns) / np.trapezoid(density, returns))
        axes.fill_between(returns, density, color=colour(index), alpha=0.15, lw=0)
        axes.plot(returns, density, color=colour(index), lw=1.3)
        axes.axvline(mean, color=colour(index), lw=1, ls="--")
        axes.set_title(f"{measure.label}: mean {mean:.1f}")
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        # Each panel has its own height: a sharp measure such as CVaR(0.1) would flatten all others.
        axes.set_ylim(0, 1.05 * max(float(density.max()), float(base.max())))
        if index + wide >= len(measures):
            axes.set_xlabel("return")
            axes.tick_params(labelbottom=True)
    for index in range(len(measures), wide * tall):
        panels[index // wide, index % wide].set_axis_off()
    figure.suptitle(
        "One return distribution under different risk measures\n"
        "grey: the distribution itself, the same in all panels, whose scales differ\n"
        "line: the distribution under the risk measure, dashed: its mean",
        fontsize=9,
        ha="left",
        x=0.02,
    )
    return figure


def _example() -> tuple[Array, Array, Array]:
    """Return a mixture of two Gaussians on a grid: returns, density, CDF."""
    returns = np.linspace(-2.0, 16.0, 601)
    components = ((0.65, 4.0, 1.4), (0.35, 9.5, 1.6))
    density = sum(
        share * np.exp(-(((returns - centre) / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi))
        for share, centre, spread in components
    )
    cdf = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(returns))])
    return returns, np.asarray(density), np.clip(cdf / cdf[-1], 0.0, 1.0)


def _measures(results: Results) -> list[RiskMeasure]:
    """Return the measures on the study's axis `risk`, and those that the paper draws in addition."""
    axis = next((one for one in results.study.grid if one.name == "risk"), None)
    if axis is None:
        return []
    names = [str(one.settings.get("risk", "neutral")) for one in axis.variants]
    return [parse_risk(name, results.study.origin) for name in dict.fromkeys([*names, *PAPER_MEASURES])]


# Shared


def _line(index: int, config: Config) -> dict[str, Any]:
    """Return the colour and the dashes of a combination; references are grey."""
    if config.reference:
        return {"color": "0.45", "ls": ("--", ":", "-.")[index % 3]}
    return {"color": colour(index), "ls": ("-", "--", ":", "-.")[index // 7 % 4]}


def _set_title(figure: Figure, results: Results, note: str) -> None:
    """Set the title and a note; if results are partial, say so in red."""
    figure.suptitle(f"{results.study.title}\n{note}", fontsize=9, ha="left", x=0.02)
    if results.partial:
        figure.text(0.99, 0.99, results.partial.upper(), color=WARNING, fontsize=9, ha="right", va="top")


def _games_and_seeds(results: Results) -> str:
    games = ", ".join(_game(env) for env in results.study.games[:6])
    more = f" and {len(results.study.games) - 6} more" if len(results.study.games) > 6 else ""
    counts = sorted({one.seeds for one in results.configs})
    seeds = counted(counts[0], "seed") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    return f"{games}{more}; {seeds}"


def _game(env: str) -> str:
    return env.rpartition("/")[2].rpartition("-v")[0] or env


def _axis_label(axis: Axis) -> str:
    return SYMBOLS.get(axis.name, axis.name.replace("_", " "))


FIGURES: dict[str, Callable[[Results], Figure]] = {
    "heatmap": heatmap,
    "violins": violins,
    "curves": curves,
    "aggregate": aggregate,
}
