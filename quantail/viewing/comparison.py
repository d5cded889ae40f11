"""Compare the learning curve of a run with published curves or other runs, frame by frame."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quantail.errors import QuantailError
from quantail.evaluation.games import game_of
from quantail.evaluation.published import published_curves, published_results
from quantail.evaluation.result_tables import ResultTable, score_text
from quantail.runs.history import History, read_history
from quantail.viewing.style import count_axis, line_style, new_figure, theme
from quantail.viewing.words import place_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
POINTS = 6  # columns of the table, each a number of frames


@dataclass(frozen=True)
class Series:
    """One learning curve, of a run or published."""

    agent: str
    source: str  # path of the run, or title of the publication
    protocol: str
    frames: Array
    scores: Array
    published: bool

    def at(self, frames: float) -> float:
        """Return the score after this many frames, linearly interpolated; NaN outside the curve."""
        if len(self.frames) == 0 or not self.frames[0] <= frames <= self.frames[-1]:
            return float("nan")
        return float(np.interp(frames, self.frames, self.scores))


@dataclass(frozen=True)
class Comparison:
    """A run and the curves it is compared with, those of the same agent first."""

    game: str
    run: Series
    others: tuple[Series, ...]
    frames_per_step: int

    def frames(self) -> Array:
        """Return some numbers of frames at which the run was evaluated and another curve is known."""
        known = [f for f in self.run.frames if any(np.isfinite(other.at(f)) for other in self.others)]
        picked = np.linspace(0, len(known) - 1, min(POINTS, len(known))).round().astype(int)
        return np.array([known[index] for index in picked])

    def table(self) -> ResultTable:
        """Return the scores of all curves after the same numbers of frames."""
        frames = self.frames()
        if not len(frames):
            return self._starts_table()
        shown = [one for one in (self.run, *self.others) if any(np.isfinite(one.at(f)) for f in frames)]
        rows = [[one.agent, one.source, *(score_text(one.at(f)) for f in frames)] for one in shown]
        notes = [
            "scores between two points of a curve are linearly interpolated",
            *_protocols(shown),
        ]
        if hidden := 1 + len(self.others) - len(shown):
            notes.append(f"{hidden} more {'curve begins' if hidden == 1 else 'curves begin'} later")
        title = f"{self.game}: mean return by number of frames"
        return ResultTable(title, ["agent", "source", *map(_millions, frames)], rows, notes)

    def _starts_table(self) -> ResultTable:
        """Return where the other curves begin, for a run that has not reached them yet."""
        first = min(float(other.frames[0]) for other in self.others)
        rows = [
            [one.agent, one.source, _millions(float(one.frames[0])), score_text(float(one.scores[0]))]
            for one in self.others
        ]
        reached = f"the run has {_millions(float(self.run.frames[-1]))} frames, the others begin at"
        notes = [f"{reached} {_millions(first)}", *_protocols(self.others)]
        title = f"{self.game}: no curves to compare at the same number of frames"
        return ResultTable(title, ["agent", "source", "from frame", "mean return"], rows, notes)

    def figure(self) -> Figure:
        """Draw the curves, with the run in front and other agents in grey."""
        figure = new_figure(height=3.6)
        axes = figure.subplots()
        coloured, grey = 1, False
        reach = max(float(self.run.frames[-1]), min(float(o.frames[0]) for o in self.others) * 1.2)
        for other in reversed(self.others):
            within = other.frames <= reach * 1.1
            if not within.any():
                continue
            same = not other.published or same_agent(other.agent, self.run.agent)
            style: dict[str, Any] = {"color": theme().line, "lw": 0.9, "zorder": 1.0}
            if same:
                style = {**line_style(coloured), "lw": 1.3, "label": f"{other.agent}, {other.source}"}
                coloured += 1
            grey = grey or not same
            steps = other.frames[within] / self.frames_per_step
            axes.plot(steps, other.scores[within], marker="." if within.sum() < 3 else "", **style)
        axes.plot(
            self.run.frames / self.frames_per_step,
            self.run.scores,
            **line_style(0),
            lw=2,
            label=f"{self.run.agent}, this run",
        )
        if grey:
            axes.plot([], [], color=theme().line, label="other agents")
        count_axis(axes, self.frames_per_step)
        axes.set_ylabel("mean return")
        place_legend(figure)
        return figure


def compare(run: str | Path, others: Sequence[str | Path]) -> Comparison:
    """Compare a run with the `published` curves of its game, with other runs of that game, or both."""
    history = _evaluated(run)
    game = game_of(history.info.env)
    found: list[Series] = []
    for other in others:
        found += (
            _published(game) if str(other) == "published" else [_series(_comparable(other, history))]
        )
    own = _series(history)
    ordered = sorted(
        found, key=lambda one: (not same_agent(one.agent, own.agent), one.agent, one.source)
    )
    return Comparison(game, own, tuple(ordered), history.info.frames_per_step)


def same_agent(one: str, other: str) -> bool:
    """Return whether two names mean the same agent, ignoring additions in brackets."""
    plain = [re.sub(r"[^a-z0-9]", "", re.split(r"[,( ]", name.lower())[0]) for name in (one, other)]
    return plain[0] == plain[1]


def _published(game: str) -> list[Series]:
    curves = published_curves(game)
    if not curves:
        single = sorted({source.title for source, _, _ in published_results(game)})
        only = f"; single scores are known from {', '.join(single)}" if single else ""
        raise QuantailError(f"no published curve of {game} is known{only}.")
    return [
        Series(
            one.agent,
            one.source.title,
            f"{one.source.protocol}, {one.source.measured}",
            one.frames,
            one.scores,
            published=True,
        )
        for one in curves
    ]


def _series(history: History) -> Series:
    return Series(
        history.config.run.agent,
        str(history.path),
        f"{history.protocol.label}, evaluation",
        history.curve["frames"],
        history.curve["mean"],
        published=False,
    )


def _evaluated(run: str | Path) -> History:
    history = read_history(run)
    if not len(history.curve["steps"]):
        raise QuantailError(f"{run} has not been evaluated yet, so it has no curve.")
    return history


def _comparable(run: str | Path, first: History) -> History:
    """Read another run, which must be of the same game and evaluated under the same protocol."""
    history = _evaluated(run)
    if game_of(history.info.env) != game_of(first.info.env):
        raise QuantailError(f"{run} is a run of {history.info.env}, not of {first.info.env}.")
    if history.protocol.hash != first.protocol.hash:
        raise QuantailError(
            f"{first.path} was evaluated under {first.protocol.label} and {run} under "
            f"{history.protocol.label}: their curves cannot be compared."
        )
    return history


def _protocols(series: Sequence[Series]) -> list[str]:
    """Return the protocol of each source."""
    return list(dict.fromkeys(f"{one.source}: {one.protocol}" for one in series))


def _millions(frames: float) -> str:
    return f"{frames / 1e6:g}M" if frames >= 1e5 else f"{frames:,.0f}"
