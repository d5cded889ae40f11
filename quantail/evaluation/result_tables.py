"""Score tables, printed on the terminal and in reports."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quantail.errors import QuantailError
from quantail.evaluation.games import Baseline, baselines, title_of
from quantail.evaluation.intervals import CONFIDENCE, aggregate_intervals, mean_intervals
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
from quantail.evaluation.results import Result
from quantail.evaluation.scores import Normalised, normalise, with_random_zero

Scores = Mapping[str, Mapping[str, list[float]]]  # agent -> game -> seeds
PAPER = " (paper)"
HUMAN_STARTS = (
    "human starts: the random and human scores are those of Nair et al. 2015, from starts that were "
    "never published; scores from other starts, especially scripted ones, are only roughly comparable"
)
NEARLY_ALL = 54  # games
NUMERIC = "0123456789+-–"
NAMES = {"dqn": "DQN", "prioritized-dueling-dqn": "Prior. Duel.", "qr-dqn": "QR-DQN", "iqn": "IQN"}
FIGURES = {"median": "median", "gap": "human gap", "mean": "mean (VP 0)"}
TITLES = {
    "median": "median",
    "iqm": "IQM",
    "human_gap": "human gap",
    "optimality_gap": "optimality gap",
    "mean": "mean",
    "mean_random_zero": "",
}


@dataclass(frozen=True)
class ResultTable:
    """A table with notes below it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def is_words(self, column: int) -> bool:
        """Return whether a column holds text (aligned left) rather than numbers (aligned right)."""
        return any(row[column] and row[column][0] not in NUMERIC for row in self.rows)


def with_paper(agents: Scores) -> Scores:
    """Return the agents together with the paper's agents on the same games."""
    played = {game for games in agents.values() for game in games}
    published = {
        NAMES[agent] + PAPER: {game: [scores[game]] for game in sorted(played & scores.keys())}
        for agent, scores in paper_scores().items()
    }
    if clash := agents.keys() & published.keys():
        raise QuantailError(
            f"{clash.pop()!r} is the name of one of the paper's columns: rename your agent."
        )
    return {**agents, **{agent: games for agent, games in published.items() if games}}


def results_table(results: Sequence[Result]) -> ResultTable:
    """Return a table of single results: one row for each agent, game and seed."""
    rows = [
        [
            one.agent,
            one.game,
            one.seed,
            score_text(one.score),
            one.episodes or "–",
            _frames(one),
            one.source,
        ]
        for one in results
    ]
    columns = ["agent", "game", "seed", "score", "episodes", "training frames", "source"]
    notes = [f"{one.game} was started from {one.starts}" for one in results if one.starts]
    return ResultTable("results", columns, rows, list(dict.fromkeys(notes)))


def seeds_table(title: str, agents: Scores) -> ResultTable:
    """Return the mean over seeds of each agent in each game, with an interval for two or more seeds."""
    rows = []
    for agent, games in agents.items():
        for game, seeds in games.items():
            interval = "none: one seed"
            if len(seeds) > 1:
                low, high = mean_intervals(np.array(seeds)[:, None])[:, 0]
                interval = f"{score_text(low)} to {score_text(high)}"
            rows.append([agent, game, score_text(float(np.mean(seeds))), interval, str(len(seeds))])
    columns = ["agent", "game", "mean return", f"{CONFIDENCE:.0%} interval", "seeds"]
    return ResultTable(title, columns, rows)


def _frames(result: Result) -> str:
    return f"{int(result.frames):,}" if result.frames.isdecimal() else result.frames or "–"


def raw_table(agents: Scores, human_starts: bool) -> ResultTable:
    """Return the raw scores of each game, averaged over seeds."""
    known = baselines(human_starts)
    rows = []
    for game in _games(agents):
        base = known.get(game)
        cells = [score_text(base.random), score_text(base.human)] if base else ["–", "–"]
        scores = [games.get(game) for games in agents.values()]
        cells += [score_text(float(np.mean(seeds))) if seeds else "–" for seeds in scores]
        rows.append([title_of(game) if base else game, *cells])
    return ResultTable(
        "raw scores", ["game", "random", "human", *agents], rows, _baselines_note(human_starts)
    )


def _baselines_note(human_starts: bool) -> list[str]:
    return [HUMAN_STARTS] if human_starts else []


def normalised_table(agents: Scores, human_starts: bool) -> ResultTable:
    """Return the human-normalised score of each game, (agent − random) / (human − random)."""
    known: Mapping[str, Baseline] = baselines(human_starts)
    if human_starts:
        known = with_random_zero(known)
    rows = []
    for game in _games(agents):
        if base := known.get(game):
            scores = [games.get(game) for games in agents.values()]
            shares = [
                f"{base.normalise(float(np.mean(seeds))):.1%}" if seeds else "–" for seeds in scores
            ]
            rows.append([title_of(game), *shares])
    title = "human-normalised scores: 0% is random play, 100% is human play"
    return ResultTable(title, ["game", *agents], rows, _baselines_note(human_starts) if rows else ())


def aggregates_table(agents: Scores, human_starts: bool) -> ResultTable:
    """Return the aggregates over games of each agent, the robust ones first."""
    normalised = {agent: normalise(games, human_starts) for agent, games in agents.items()}
    counted = {agent: one for agent, one in normalised.items() if one.games}
    both = any(one.has_video_pinball for one in counted.values())
    random = baselines(human_starts)["video_pinball"].random
    figures = {name: title for name, title in TITLES.items() if both or name != "mean_random_zero"}
    if both:
        figures |= {"mean": f"mean (VP {random:,.1f})", "mean_random_zero": "mean (VP 0)"}
    values = {agent: one.aggregates() for agent, one in counted.items()}
    intervals = {agent: _intervals(one) for agent, one in counted.items()}
    rows, notes = [], []
    for name, title in figures.items():
        for agent, one in counted.items():
            cells = [_figure(name, values[agent][name]), "–"]
            if name in intervals[agent]:
                low, high = intervals[agent][name]
                cells[1] = f"{_figure(name, low)} to {_figure(name, high)}"
            first = agent == next(iter(counted))
            rows.append([title if first else "", agent, *cells, str(len(one.games)), str(one.runs)])
    for agent, one in normalised.items():
        notes += _caveats(agent, one, agents[agent])
    if any(intervals.values()):
        notes.append(
            f"intervals: {CONFIDENCE:.0%}, stratified bootstrap over the seeds of each game (rliable)"
        )
    if both:
        notes.append(
            f"VP is Video Pinball's random score: {random:,.1f} in the table, 0 in published means"
            + (
                ", and 0 in all other aggregates: from human starts it exceeds the human score"
                * human_starts
            )
        )
    notes += _baselines_note(human_starts)
    columns = ["over games", "agent", "value", "interval", "games", "seeds"]
    return ResultTable("human-normalised, over games", columns, rows, notes)


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
                figures = [_figure(name, found[name]) for name in ("median", "iqm", "human_gap")]
                mean = _figure("mean", found["mean_random_zero"])
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
        cells = {name: _figure(name, value) for name, value in one.figures.items()}
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


def _intervals(one: Normalised) -> dict[str, tuple[float, float]]:
    if one.runs < 2:
        return {}
    means = {
        "mean": aggregate_intervals(one.as_in_table)["mean"],
        "mean_random_zero": aggregate_intervals(one.random_zero)["mean"],
    }
    return aggregate_intervals(one.scores) | means


def _games(agents: Scores) -> list[str]:
    return sorted({game for games in agents.values() for game in games})


def score_text(value: float) -> str:
    """Return a raw score as tables print it; a dash if there is none."""
    if np.isnan(value):
        return "–"
    return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"


def _figure(name: str, value: float) -> str:
    return f"{value:.3f}" if name.endswith("gap") else f"{value:.1%}"


def _caveats(agent: str, one: Normalised, raw: Mapping[str, list[float]]) -> list[str]:
    """Return the caveats of an agent's aggregates: missing games, one seed, unequal seeds."""
    notes = []
    if one.without_human:
        missing = ", ".join(one.without_human)
        notes.append(
            f"{agent}: {len(one.games)} of {len(raw)} games are in the aggregates; "
            f"there is no published human score for {missing}"
        )
    if one.games and one.runs == 1 and not agent.endswith(PAPER):
        notes.append(f"{agent}: one seed, so there is no interval")
    if any(len(raw[game]) > one.runs for game in one.games):
        notes.append(
            f"{agent}: in games with more than {one.runs} seeds, only the first {one.runs} count"
        )
    return notes
