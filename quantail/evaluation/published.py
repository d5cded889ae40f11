"""Published results, each with its source and protocol. reference/README.md describes the tables."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from quantail.evaluation.games import read_reference
from quantail.evaluation.scores import normalise

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Source:
    """The origin of published results, and the conditions under which they were measured."""

    name: str
    protocol: str
    measured: str
    seeds: str
    title: str
    origin: str


@dataclass(frozen=True)
class Curve:
    """A published learning curve."""

    source: Source
    agent: str
    frames: Array
    scores: Array
    low: Array | None  # the lowest and the highest seed, where published
    high: Array | None


@dataclass(frozen=True)
class Aggregate:
    """Aggregate scores of an agent over games, published or computed from published scores."""

    source: Source
    protocol: str
    agent: str
    measured: str
    frames: int  # of training
    games: int | None
    seeds: str
    figures: dict[str, float]  # median, iqm, human_gap, ..., where known; 1 is the human score
    iqm_over: str  # runs or games


@dataclass(frozen=True)
class TableRow:
    """A row of the paper's Table 1 or 2, with the values computed from published scores of games."""

    agent: str
    printed: dict[str, float]  # percentages, and the gap
    computed: dict[str, float]  # the same, from scores; empty where no scores are published
    data: str  # the table of scores that `computed` is based on
    games: int

    def agrees(self, figure: str) -> bool:
        """Return whether the printed value equals the computed one, rounded as it is printed."""
        digits = 3 if figure == "gap" else 0
        return figure in self.computed and round(self.computed[figure], digits) == self.printed[figure]


@cache
def sources() -> dict[str, Source]:
    """Return every source by its name."""
    return {row["source"]: Source(*row.values()) for row in read_reference("sources")}


@cache
def paper_scores() -> dict[str, dict[str, float]]:
    """Return the raw scores of the paper's appendix (one seed): agent -> game -> score."""
    rows = list(read_reference("paper_scores"))
    agents = [name for name in rows[0] if name != "game"]
    return {agent: {row["game"]: float(row[agent]) for row in rows} for agent in agents}


@cache
def published_scores(source: str) -> dict[str, dict[str, float]]:
    """Return the raw scores of a source: agent -> game -> score."""
    found: dict[str, dict[str, float]] = {}
    for row in read_reference("scores"):
        if row["source"] == source:
            found.setdefault(row["agent"], {})[row["game"]] = float(row["score"])
    return found


def published_results(game: str) -> list[tuple[Source, str, float]]:
    """Return every published score of a game as (source, agent, score)."""
    return [
        (sources()[row["source"]], row["agent"], float(row["score"]))
        for row in read_reference("scores")
        if row["game"] == game
    ]


def published_curves(game: str) -> list[Curve]:
    """Return every published learning curve of a game."""
    return _curves((row for row in read_reference("curves") if row["game"] == game), "score")


def _curves(rows: Iterable[dict[str, str]], figure: str) -> list[Curve]:
    points: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        points.setdefault((row["source"], row["agent"]), []).append(row)

    def column(rows: list[dict[str, str]], name: str) -> Array:
        return np.array([float(row[name]) for row in rows])

    return [
        Curve(
            sources()[source],
            agent,
            column(members, "frames"),
            column(members, figure),
            column(members, "low") if all(row["low"] for row in members) else None,
            column(members, "high") if all(row["high"] for row in members) else None,
        )
        for (source, agent), members in points.items()
    ]


def median_curves() -> list[Curve]:
    """Return published curves of the median over games, in percent of the human score."""
    return _curves(read_reference("median_curves"), "median")


FIGURES = ("median", "iqm", "human_gap", "optimality_gap", "mean", "mean_random_zero")


def published_aggregates() -> list[Aggregate]:
    """Return aggregates whose per-game scores are too large to ship, or were never published."""
    return [
        Aggregate(
            sources()[row["source"]],
            row["protocol"],
            row["agent"],
            row["measured"],
            int(row["frames"]),
            int(row["games"]) if row["games"] else None,
            row["seeds"],
            {name: float(row[name]) for name in FIGURES if row[name]},
            row["iqm_over"],
        )
        for row in read_reference("aggregates")
    ]


def table_1() -> list[TableRow]:
    """Return the paper's Table 1 (no-op starts), with values computed from per-game scores."""
    data = {agent: ("appendix", scores) for agent, scores in paper_scores().items()}
    data["c51"] = ("C51 paper", published_scores("c51-no-op")["C51"])
    data["rainbow"] = ("Rainbow paper", published_scores("rainbow-table6")["Rainbow"])
    rows = []
    for row in read_reference("paper_table1"):
        printed = {name: float(row[name]) for name in ("median", "gap", "mean")}
        name, scores = data.get(row["agent"], ("", {}))
        rows.append(TableRow(row["agent"], printed, _computed(scores), name, len(scores)))
    return rows


def table_2() -> list[TableRow]:
    """Return the paper's Table 2 (human starts), with values computed from per-game scores."""
    rainbow = published_scores("rainbow-table5")
    data = {
        "dqn": ("Rainbow paper", rainbow["DQN"]),
        "prioritized-dqn": (
            "prioritized paper",
            published_scores("prioritized-human-starts")["Prioritized DDQN (prop, tuned)"],
        ),
        "a3c": ("A3C paper", published_scores("a3c-human-starts")["A3C FF"]),
        "c51": ("Rainbow paper", rainbow["Distributional DQN"]),
        "rainbow": ("Rainbow paper", rainbow["Rainbow"]),
    }
    rows = []
    for row in read_reference("paper_table2"):
        name, scores = data.get(row["agent"], ("", {}))
        printed = {"median": float(row["median"])}
        rows.append(
            TableRow(row["agent"], printed, _computed(scores, human_starts=True), name, len(scores))
        )
    return rows


def _computed(scores: dict[str, float], human_starts: bool = False) -> dict[str, float]:
    """Return median, gap and mean as in the paper's tables, with Video Pinball's random score as 0."""
    if not scores:
        return {}
    found = normalise({game: [score] for game, score in scores.items()}, human_starts).aggregates()
    return {
        "median": 100 * found["median"],
        "gap": found["human_gap"],
        "mean": 100 * found["mean_random_zero"],
        "mean_table": 100 * found["mean"],
        "iqm": 100 * found["iqm"],
    }
