"""Score tables for people: the same rows on a terminal and in a report."""

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
    "never published; scores from other starts, a script's above all, are only roughly measured by them"
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
class Sheet:
    """A table and what must be said below it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def is_words(self, column: int) -> bool:
        """Whether a column holds words, which stand at its left, or numbers, at its right."""
        return any(row[column] and row[column][0] not in NUMERIC for row in self.rows)


def with_paper(agents: Scores) -> Scores:
    """The agents, and beside them the paper's in the same games."""
    played = {game for games in agents.values() for game in games}
    beside = {
        NAMES[agent] + PAPER: {game: [scores[game]] for game in sorted(played & scores.keys())}
        for agent, scores in paper_scores().items()
    }
    if clash := agents.keys() & beside.keys():
        raise QuantailError(
            f"{clash.pop()!r} is the name of a column of the paper: name yours otherwise."
        )
    return {**agents, **{agent: games for agent, games in beside.items() if games}}


def results_sheet(results: Sequence[Result]) -> Sheet:
    """What each score was measured on."""
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
    columns = ["agent", "game", "seed", "score", "episodes", "frames of training", "from"]
    notes = [f"{one.game} was begun from {one.starts}" for one in results if one.starts]
    return Sheet("results", columns, rows, list(dict.fromkeys(notes)))


def seeds_sheet(title: str, agents: Scores) -> Sheet:
    """The mean over seeds of each agent in each game, with its interval where there are several."""
    rows = []
    for agent, games in agents.items():
        for game, seeds in games.items():
            interval = "none: one seed"
            if len(seeds) > 1:
                low, high = mean_intervals(np.array(seeds)[:, None])[:, 0]
                interval = f"{score_text(low)} to {score_text(high)}"
            rows.append([agent, game, score_text(float(np.mean(seeds))), interval, str(len(seeds))])
    columns = ["agent", "game", "mean return", f"{CONFIDENCE:.0%} interval", "seeds"]
    return Sheet(title, columns, rows)


def _frames(result: Result) -> str:
    return f"{int(result.frames):,}" if result.frames.isdecimal() else result.frames or "–"


def raw_sheet(agents: Scores, human_starts: bool) -> Sheet:
    """Each game's raw scores, the mean over seeds."""
    known = baselines(human_starts)
    rows = []
    for game in _games(agents):
        base = known.get(game)
        cells = [score_text(base.random), score_text(base.human)] if base else ["–", "–"]
        scores = [games.get(game) for games in agents.values()]
        cells += [score_text(float(np.mean(seeds))) if seeds else "–" for seeds in scores]
        rows.append([title_of(game) if base else game, *cells])
    return Sheet("raw scores", ["game", "random", "human", *agents], rows, _baselines_note(human_starts))


def _baselines_note(human_starts: bool) -> list[str]:
    return [HUMAN_STARTS] if human_starts else []


def normalised_sheet(agents: Scores, human_starts: bool) -> Sheet:
    """Each game's score as a share of the way from random play to a person's."""
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
    title = "human-normalised: 0% is random play, 100% a person's"
    return Sheet(title, ["game", *agents], rows, _baselines_note(human_starts) if rows else ())


def aggregates_sheet(agents: Scores, human_starts: bool) -> Sheet:
    """What all games together say of each agent, the robust figures first."""
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
        notes += _explained(agent, one, agents[agent])
    if any(intervals.values()):
        notes.append(
            f"intervals: {CONFIDENCE:.0%}, stratified bootstrap over the seeds of each game (rliable)"
        )
    if both:
        notes.append(
            f"VP is Video Pinball's random score: {random:,.1f} in the table, 0 in published means"
            + (", and here in all else: from human starts it is above the person's" * human_starts)
        )
    notes += _baselines_note(human_starts)
    columns = ["over games", "agent", "value", "interval", "games", "seeds"]
    return Sheet("human-normalised, over games", columns, rows, notes)


def paper_sheets() -> list[Sheet]:
    """The paper's own tables, beside what follows from published scores of single games."""
    rows = []
    for agent, scores in paper_scores().items():
        found = normalise({game: [score] for game, score in scores.items()}).aggregates()
        shares = [f"{100 * found[name]:.4g}%" for name in ("median", "iqm", "mean_random_zero", "mean")]
        rows.append([NAMES[agent], *shares[:2], f"{found['human_gap']:.4f}", *shares[2:]])
    columns = ["agent", "median", "IQM", "human gap", "mean (VP 0)", "mean (VP 16,256.9)"]
    appendix = "from the raw scores of the paper's appendix: 57 games, one seed, no-op starts"
    about = ["VP is Video Pinball's random score: the appendix has 16,256.9; 0 gives published means"]
    checked = [
        "✓ the printed figure is the computed one, rounded; ✗ it is not",
        "DQN's and C51's means follow only with Video Pinball's random score as 0; no gap follows",
        "IQN and QR-DQN are printed as means over 5 and 3 seeds; the appendix has one seed",
        "scores of Rainbow and the human starts of DQN and C51 are published for 54 of the 57 games",
        "from human starts a random player beats the person in Video Pinball: 0 in all of Table 2",
    ]
    return [
        Sheet(appendix, columns, rows, about),
        _checked_sheet("the paper's Table 1, no-op starts", table_1()),
        _checked_sheet("the paper's Table 2, human starts", table_2(), checked),
        _others_sheet(),
        _zoo_sheet(),
        _aggregates_sheet(),
    ]


def _others_sheet() -> Sheet:
    """What follows from other published tables with scores of nearly all games."""
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
    notes = ["the sources' titles, seeds and origins are in quantail/evaluation/reference/sources.csv"]
    return Sheet("what follows from other published scores", columns, rows, notes)


def _zoo_sheet() -> Sheet:
    """The medians of DQN Zoo's curves at their end."""
    rows = []
    for curve in median_curves():
        last = curve.frames.argmax()
        spread = "–"
        if curve.low is not None and curve.high is not None:
            spread = f"{curve.low[last]:.1f}% to {curve.high[last]:.1f}%"
        rows.append([curve.agent, f"{curve.scores[last]:.1f}%", spread])
    rows.sort(key=lambda row: -float(row[1].rstrip("%")))
    title = "DQN Zoo: median of 57 games at 200M frames, no-op, 5 seeds, mean of 10 points"
    return Sheet(title, ["agent", "median", "seeds from to"], rows)


def _aggregates_sheet() -> Sheet:
    """Published aggregates, each at the most frames that its source has."""
    last: dict[tuple[str, ...], dict[str, str]] = {}
    for one in sorted(published_aggregates(), key=lambda one: one.frames):
        measured = re.sub(r",? (of the )?last .*| after .*", "", one.measured)
        cells = {name: _figure(name, value) for name, value in one.figures.items()}
        if one.iqm_over == "games":
            cells["iqm"] += "*"
        frames = f"{one.frames / 1e6:g}M"
        row = last.setdefault((one.agent, one.source.name, one.protocol, measured), {})
        kept = row if row.get("frames") == frames else {}
        row |= (
            dict.fromkeys(row, "–") | kept | cells | {"frames": frames, "games": str(one.games or "–")}
        )
    shown = ("games", "frames", "median", "iqm", "human_gap", "optimality_gap")
    rows = [[*key, *(row.get(name, "–") for name in shown)] for key, row in last.items()]
    rows.sort(key=lambda row: list(sources()).index(row[1]))
    columns = ["agent", "source", "protocol", "measured", "games", "frames"]
    notes = [
        "* over games, of the mean over seeds; other IQMs are over all runs of all games",
        "Dopamine's IQM is of the last 1M frames, its other figures of the last 5M",
        "means, seeds, and figures at fewer frames: quantail/evaluation/reference/aggregates.csv",
    ]
    figures = ["median", "IQM", "human gap", "optimality gap"]
    return Sheet("other published aggregates", [*columns, *figures], rows, notes)


def _checked_sheet(title: str, table: Sequence[TableRow], notes: Sequence[str] = ()) -> Sheet:
    rows = []
    for row in table:
        for figure, printed in row.printed.items():
            gap = figure == "gap"
            cells = [f"{printed:.3f}" if gap else f"{printed:.0f}%", "–", "–", "no scores published"]
            if row.follows:
                value = row.follows[figure]
                verdict = "✓" if row.agrees(figure) else "✗"
                cells[1:] = [f"{value:.4f}" if gap else f"{value:.1f}%", verdict]
                cells.append(f"{row.data}, {row.games} games")
            rows.append([row.agent, FIGURES[figure], *cells])
    columns = ["agent", "figure", "printed", "computed", "", "from"]
    return Sheet(title, columns, rows, notes)


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
    """A raw score as tables have it; a dash where there is none."""
    if np.isnan(value):
        return "–"
    return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"


def _figure(name: str, value: float) -> str:
    return f"{value:.3f}" if name.endswith("gap") else f"{value:.1%}"


def _explained(agent: str, one: Normalised, raw: Mapping[str, list[float]]) -> list[str]:
    """What a reader must know of an aggregate before believing it."""
    notes = []
    if one.without_human:
        out = ", ".join(one.without_human)
        notes.append(
            f"{agent}: {len(one.games)} of {len(raw)} games are in the aggregates; "
            f"nobody published a human score for {out}"
        )
    if one.games and one.runs == 1 and not agent.endswith(PAPER):
        notes.append(f"{agent}: one seed, so there is no interval")
    if any(len(raw[game]) > one.runs for game in one.games):
        notes.append(f"{agent}: of games with more seeds than {one.runs}, the first {one.runs} count")
    return notes
