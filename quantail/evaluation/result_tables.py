"""Score tables, printed on the terminal and in reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quantail.errors import QuantailError
from quantail.evaluation.games import Baseline, baselines, title_of
from quantail.evaluation.intervals import CONFIDENCE, aggregate_intervals, mean_intervals
from quantail.evaluation.published import paper_scores
from quantail.evaluation.results import Result
from quantail.evaluation.scores import Normalised, normalise, with_random_zero

Scores = Mapping[str, Mapping[str, list[float]]]  # agent -> game -> seeds
PAPER = " (paper)"
HUMAN_STARTS = (
    "human starts: the random and human scores are those of Nair et al. 2015, from starts that were "
    "never published; scores from other starts, especially scripted ones, are only roughly comparable"
)
NUMERIC = "0123456789+-–"
NAMES = {"dqn": "DQN", "prioritized-dueling-dqn": "Prior. Duel.", "qr-dqn": "QR-DQN", "iqn": "IQN"}
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
            cells = [figure_text(name, values[agent][name]), "–"]
            if name in intervals[agent]:
                low, high = intervals[agent][name]
                cells[1] = f"{figure_text(name, low)} to {figure_text(name, high)}"
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


def figure_text(name: str, value: float) -> str:
    """Return an aggregate as tables print it: a gap as a number, anything else as a percentage."""
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
