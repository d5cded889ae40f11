"""The paper's tables, checked against published scores, and tables of other published results."""

import re
from collections.abc import Sequence

from quantail.evaluation.published import (
    TableRow,
    median_curves,
    paper_scores,
    published_aggregates,
    published_scores,
    sources,
    table_1,
    table_2,
)
from quantail.evaluation.result_tables import NAMES, ResultTable, figure_text
from quantail.evaluation.scores import normalise

NEARLY_ALL = 54  # games
FIGURES = {"median": "median", "gap": "human gap", "mean": "mean (VP 0)"}


def paper_tables() -> list[ResultTable]:
    """Return the paper's tables, checked against published per-game scores, and other results."""
    rows = []
    for agent, scores in paper_scores().items():
        found = normalise({game: [score] for game, score in scores.items()}).aggregates()
        shares = [f"{100 * found[name]:.4g}%" for name in ("median", "iqm", "mean_random_zero", "mean")]
        rows.append([NAMES[agent], *shares[:2], f"{found['human_gap']:.4f}", *shares[2:]])
    columns = ["agent", "median", "IQM", "human gap", "mean (VP 0)", "mean (VP 16,256.9)"]
    appendix = "computed from the scores of the paper's appendix: 57 games, one seed, no-op starts"
    about = ["VP is Video Pinball's random score: 16,256.9 in the appendix; 0 gives the published means"]
    checked = [
        "✓ the printed value equals the computed one, rounded; ✗ it does not",
        "the means of DQN and C51 agree only with Video Pinball's random score as 0; no human gap does",
        "the printed values of IQN and QR-DQN are means over 5 and 3 seeds; the appendix has one seed",
        "scores of Rainbow, and of DQN and C51 from human starts, are published for 54 of the 57 games",
        "from human starts, random play beats the human in Video Pinball, so Table 2 takes it as 0",
    ]
    return [
        ResultTable(appendix, columns, rows, about),
        _checked_table("the paper's Table 1, no-op starts", table_1()),
        _checked_table("the paper's Table 2, human starts", table_2(), checked),
        _others_table(),
        _zoo_table(),
        _aggregates_table(),
    ]


def _others_table() -> ResultTable:
    """Return aggregates of other published score tables that cover nearly all games."""
    rows = []
    for source in sources().values():
        for agent, scores in published_scores(source.name).items():
            one = normalise({game: [v] for game, v in scores.items()}, source.protocol == "human-starts")
            if len(one.games) >= NEARLY_ALL:
                found = one.aggregates()
                figures = [figure_text(name, found[name]) for name in ("median", "iqm", "human_gap")]
                mean = figure_text("mean", found["mean_random_zero"])
                rows.append([source.protocol, agent, source.name, str(len(one.games)), *figures, mean])
    order = ("no-op", "sticky", "human-starts")
    rows.sort(key=lambda row: (order.index(row[0]), -float(row[4].rstrip("%"))))
    columns = ["protocol", "agent", "source", "games", "median", "IQM", "human gap", "mean (VP 0)"]
    notes = [
        "quantail/evaluation/reference/sources.csv has the titles, seeds and origins of the sources"
    ]
    return ResultTable("aggregates computed from other published scores", columns, rows, notes)


def _zoo_table() -> ResultTable:
    """Return the final medians of DQN Zoo's curves."""
    rows = []
    for curve in median_curves():
        last = curve.frames.argmax()
        spread = "–"
        if curve.low is not None and curve.high is not None:
            spread = f"{curve.low[last]:.1f}% to {curve.high[last]:.1f}%"
        rows.append([curve.agent, f"{curve.scores[last]:.1f}%", spread])
    rows.sort(key=lambda row: -float(row[1].rstrip("%")))
    title = "DQN Zoo: median over 57 games at 200M frames, no-op, 5 seeds, mean of 10 points"
    return ResultTable(title, ["agent", "median", "range over seeds"], rows)


def _aggregates_table() -> ResultTable:
    """Return published aggregates, each at the largest number of frames that its source has."""
    last: dict[tuple[str, ...], dict[str, str]] = {}
    for one in sorted(published_aggregates(), key=lambda one: one.frames):
        measured = re.sub(r",? (of the )?last .*| after .*", "", one.measured)
        cells = {name: figure_text(name, value) for name, value in one.figures.items()}
        if one.iqm_over == "games":
            cells["iqm"] += "*"
        frames = f"{one.frames / 1e6:g}M"
        row = last.setdefault((one.agent, one.source.name, one.protocol, measured), {})
        same = row if row.get("frames") == frames else {}
        row |= (
            dict.fromkeys(row, "–") | same | cells | {"frames": frames, "games": str(one.games or "–")}
        )
    shown = ("games", "frames", "median", "iqm", "human_gap", "optimality_gap")
    rows = [[*key, *(row.get(name, "–") for name in shown)] for key, row in last.items()]
    rows.sort(key=lambda row: list(sources()).index(row[1]))
    columns = ["agent", "source", "protocol", "measured", "games", "frames"]
    notes = [
        "* IQM over games of the mean over seeds; other IQMs are over all runs of all games",
        "Dopamine's IQM covers the last 1M frames, its other values the last 5M",
        "quantail/evaluation/reference/aggregates.csv has means, seeds and values at fewer frames",
    ]
    figures = ["median", "IQM", "human gap", "optimality gap"]
    return ResultTable("other published aggregates", [*columns, *figures], rows, notes)


def _checked_table(title: str, table: Sequence[TableRow], notes: Sequence[str] = ()) -> ResultTable:
    rows = []
    for row in table:
        for figure, printed in row.printed.items():
            gap = figure == "gap"
            cells = [f"{printed:.3f}" if gap else f"{printed:.0f}%", "–", "–", "no scores published"]
            if row.computed:
                value = row.computed[figure]
                verdict = "✓" if row.agrees(figure) else "✗"
                cells[1:] = [f"{value:.4f}" if gap else f"{value:.1f}%", verdict]
                cells.append(f"{row.data}, {row.games} games")
            rows.append([row.agent, FIGURES[figure], *cells])
    columns = ["agent", "aggregate", "printed", "computed", "", "data"]
    return ResultTable(title, columns, rows, notes)
