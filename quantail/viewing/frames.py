"""Frames of a video: the game at the left, the law of every action's return at the right.

Marks are those of the live page: a circle at the mean, a diamond at the value under the risk measure,
and a shade where the levels τ count.
"""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.typing import NDArray

from quantail.risk import Neutral, RiskMeasure
from quantail.viewing.scenes import TAUS, Scene, level_weights
from quantail.viewing.style import new_figure

PIXELS = (960, 540)
DOTS = 100  # an inch
# As on the live page: dark enough to be read as words.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b5578f", "#b07a00", "#2f8fc4", "#222222")
SHADE = "#dbe7f3"
QUIET = "#5b6470"
# Of actions that are not chosen, so that lines upon each other are all seen; the chosen one is whole.
DASHES: Sequence[Any] = ("-", (0, (5, 4)), (0, (1.5, 2.5)), (0, (8, 3, 1.5, 3)))
MEAN_AT, VALUE_AT, NAME_AT = 1.04, 1.095, 1.16  # on the axis of τ
LEGEND = 52  # letters in a line
TALLEST = 0.9  # of the shade
SETTLED = 0.8  # seconds in which a range that is too wide narrows


class Span:
    """A range that widens at once and narrows slowly, so that axes do not jump."""

    def __init__(self, frames: float) -> None:
        self.share = 1 - math.exp(-1 / frames)
        self.ends: tuple[float, float] | None = None

    def see(self, low: float, high: float) -> tuple[float, float]:
        """The range once these were seen."""
        room = 0.06 * max(high - low, 1e-3)
        low, high = low - room, high + room
        if self.ends is not None:
            was_low, was_high = self.ends
            low = low if low < was_low else was_low + self.share * (low - was_low)
            high = high if high > was_high else was_high + self.share * (high - was_high)
        self.ends = low, high
        return self.ends


class Film:
    """Draws scenes of one episode after each other."""

    def __init__(
        self, names: Sequence[str], risk: RiskMeasure, fps: int, env: str, legend: str = ""
    ) -> None:
        self.names, self.risk, self.env, self.legend = names, risk, env, legend
        self.span = Span(fps * SETTLED)
        self.figure = new_figure(PIXELS[0] / DOTS, PIXELS[1] / DOTS)
        self.figure.set_dpi(DOTS)
        self.canvas: Any = FigureCanvasAgg(self.figure)
        self.game: Any = None
        self.axes: Any = None

    def draw(self, scene: Scene, step: int, score: float) -> NDArray[np.uint8]:
        """An RGB picture of a decision."""
        if self.axes is None:
            self._set_up(scene)
        if self.game is not None and scene.picture is not None:
            self.image.set_data(scene.picture)
        blind = "" if self.game is not None else f"; {self.env} has no picture of itself"
        self.headline.set_text(f"step {step}, score {score:g}{blind}")
        low, high = self.span.see(float(scene.law.min()), float(scene.law.max()))
        self.axes.set_ylim(low, high)
        places = apart(scene.values, (high - low) * self._line_height(), low, high)
        for action, name in enumerate(self.names):
            self._draw_action(scene, action, name, places[action])
        value = self._told(scene.values[scene.chosen])
        by = "the highest mean" if isinstance(self.risk, Neutral) else f"the best under {self.risk}"
        self.axes.set_title(f"takes “{self.names[scene.chosen]}”: {by}, {value}", fontweight="bold")
        self.canvas.draw()
        return np.asarray(self.canvas.buffer_rgba())[:, :, :3]

    def _set_up(self, scene: Scene) -> None:
        if scene.picture is not None:
            self.game, self.axes = self.figure.subplots(1, 2, width_ratios=(1, 1.5))
            self.game.set(xticks=[], yticks=[])
            for side in self.game.spines.values():
                side.set_visible(False)
            self.image = self.game.imshow(scene.picture, interpolation="nearest")
            self.game.set_xlabel(textwrap.fill(self.legend, LEGEND), color=QUIET, fontsize=9)
            self.headline = self.game.set_title("", loc="left")
        else:
            self.axes = self.figure.subplots()
            self.headline = self.figure.suptitle("", x=0.01, ha="left", fontsize=9)
        axes = self.axes
        weights = level_weights(self.risk)
        heights = TALLEST * np.minimum(weights / max(weights.max(), 3.0), 1.0)
        edges = np.linspace(0, 1, len(TAUS) + 1)
        axes.stairs(
            heights, edges, fill=True, color=SHADE, zorder=0, transform=axes.get_xaxis_transform()
        )
        self.lines, self.marks, self.labels = [], [], []
        for action in range(len(self.names)):
            ink = COLOURS[action % len(COLOURS)]
            self.lines.append(axes.plot(TAUS, TAUS, color=ink)[0])
            self.marks.append(
                (
                    axes.plot([MEAN_AT], [0], marker="o", ls="", mfc="white", mec=ink, mew=2)[0],
                    axes.plot([VALUE_AT], [0], marker="D", ls="", mfc=ink, mec=ink)[0],
                    axes.plot([VALUE_AT, NAME_AT], [0, 0], color=ink, lw=0.6)[0],
                )
            )
            self.labels.append(
                axes.text(NAME_AT + 0.01, 0, "", color=ink, va="center", fontsize=self._font())
            )
        axes.set(xlim=(0, NAME_AT + self._name_room()), xticks=np.linspace(0, 1, 6))
        axes.spines["bottom"].set_bounds(0, 1)
        axes.set_xlabel(
            f"τ: from bad luck to good luck\n{self._marks_told()}", x=0, ha="left", fontsize=8.5
        )
        axes.set_ylabel("discounted return from here on, as the agent expects it")

    def _marks_told(self) -> str:
        if isinstance(self.risk, Neutral):
            return "○ mean   ◆ value it chooses by (the mean)   shade: how much each τ counts"
        return f"○ mean   ◆ value under {self.risk}   shade: how much each τ counts"

    def _draw_action(self, scene: Scene, action: int, name: str, place: float) -> None:
        best = action == scene.chosen
        style = "-" if best else DASHES[action % len(DASHES)]
        line = self.lines[action]
        line.set_ydata(scene.law[:, action])
        # Thin ones lie on the thick one, dashed ones on whole ones.
        line.set(linewidth=5.0 if best else 1.8, linestyle=style)
        line.set_zorder(2 if best else 3 + action % len(DASHES) / 10)
        mean, value, leader = self.marks[action]
        size = 8 if best else 5.5
        for mark, at in ((mean, scene.means[action]), (value, scene.values[action])):
            mark.set_ydata([at])
            mark.set(markersize=size, zorder=6 if best else 5)
        leader.set_ydata([scene.values[action], place])
        label = self.labels[action]
        label.set_position((NAME_AT + 0.01, place))
        label.set_text(f"{name} {self._told(scene.values[action])}")
        label.set_fontweight("bold" if best else "normal")

    def _told(self, value: float) -> str:
        """A number, with the digits that the range of the axis calls for."""
        low, high = self.span.ends or (0.0, 1.0)
        width = high - low
        digits = int(np.clip(2 - math.floor(math.log10(width / 10 if width > 10 else width)), 0, 6))
        return f"{value:.{digits}f}"

    def _font(self) -> float:
        return 9.0 if len(self.names) <= 8 else 7.0

    def _line_height(self) -> float:
        """Of a label, as a share of the axes."""
        return self._font() * 1.35 / 72 / (PIXELS[1] / DOTS * 0.8)

    def _name_room(self) -> float:
        """Beside the axes for names, on the axis of τ."""
        letters = max(len(name) for name in self.names) + 7
        return letters * self._font() * 0.62 / 72 / (PIXELS[0] / DOTS * 0.5)


def apart(values: NDArray[Any], gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Places near these values, at least `gap` from each other, within the range where it has room."""
    order = np.argsort(values, kind="stable")
    places = np.asarray(values, np.float64)[order]
    steps = np.arange(len(places)) * gap
    # The nearest rising sequence to `places - steps`: averages of blocks that would fall.
    blocks: list[tuple[float, int]] = []
    for wanted in places - steps:
        mean, count = float(wanted), 1
        while blocks and blocks[-1][0] > mean:
            before, size = blocks.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        blocks.append((mean, count))
    level = np.concatenate([np.full(count, mean) for mean, count in blocks])
    level = np.clip(level, low + gap / 2, max(high - gap / 2 - steps[-1], low + gap / 2))
    answer = np.empty(len(places))
    answer[order] = level + steps
    return answer
