"""Frames of a video: the game at the left, the return distribution of every action at the right.

The marks are those of the live page: a circle at the mean, a diamond at the value under the risk
measure, and a shaded area that shows the weight of each quantile fraction τ.
"""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.risk import RiskMeasure
from quantail.viewing.scenes import TAUS, Scene, tau_weights
from quantail.viewing.style import new_figure, spread_labels

PIXELS = (960, 540)
DPI = 100
# The colours of the live page, which are dark enough for text.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b5578f", "#b07a00", "#2f8fc4", "#222222")
SHADE = "#dbe7f3"
QUIET = "#5b6470"
# Actions that are not chosen are dashed, so that lines on top of each other are all visible.
DASHES: Sequence[Any] = ("-", (0, (5, 4)), (0, (1.5, 2.5)), (0, (8, 3, 1.5, 3)))
MEAN_AT, VALUE_AT, NAME_AT = 1.04, 1.095, 1.16  # positions on the τ axis
LEGEND_WIDTH = 52  # characters per line
MAX_SHADE = 0.9  # height of the shaded area, as a share of the axes
NARROWING_TIME = 0.8  # seconds: time constant with which a range that is too wide narrows


class SmoothRange:
    """A range that widens at once and narrows slowly, so that axes do not jump."""

    def __init__(self, frames: float) -> None:
        self.share = 1 - math.exp(-1 / frames)
        self.ends: tuple[float, float] | None = None

    def update(self, low: float, high: float) -> tuple[float, float]:
        """Return the range after it has been extended to these values."""
        margin = 0.06 * max(high - low, 1e-3)
        low, high = low - margin, high + margin
        if self.ends is not None:
            was_low, was_high = self.ends
            low = low if low < was_low else was_low + self.share * (low - was_low)
            high = high if high > was_high else was_high + self.share * (high - was_high)
        self.ends = low, high
        return self.ends


class FrameRenderer:
    """Draws the scenes of one episode, one after another."""

    def __init__(
        self, names: Sequence[str], risk: RiskMeasure, fps: int, env: str, legend: str = ""
    ) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self.names, self.risk, self.env, self.legend = names, risk, env, legend
        self.range = SmoothRange(fps * NARROWING_TIME)
        self.figure = new_figure(PIXELS[0] / DPI, PIXELS[1] / DPI)
        self.figure.set_dpi(DPI)
        self.canvas: Any = FigureCanvasAgg(self.figure)
        self.game: Any = None
        self.axes: Any = None

    def draw(self, scene: Scene, step: int, score: float) -> NDArray[np.uint8]:
        """Return an RGB picture of a decision."""
        if self.axes is None:
            self._set_up(scene)
        if self.game is not None and scene.picture is not None:
            self.image.set_data(scene.picture)
        note = "" if self.game is not None else f"; {self.env} renders no picture"
        self.headline.set_text(f"step {step}, score {score:g}{note}")
        low, high = self.range.update(float(scene.distribution.min()), float(scene.distribution.max()))
        self.axes.set_ylim(low, high)
        places = spread_labels(scene.values, (high - low) * self._line_height(), low, high)
        for action, name in enumerate(self.names):
            self._draw_action(scene, action, name, places[action])
        value = self._format(scene.values[scene.chosen])
        reason = "highest mean" if self.risk.is_neutral else f"highest value under {self.risk.label}"
        self.axes.set_title(
            f"chooses “{self.names[scene.chosen]}”: {reason}, {value}", fontweight="bold"
        )
        self.canvas.draw()
        return np.asarray(self.canvas.buffer_rgba())[:, :, :3]

    def _set_up(self, scene: Scene) -> None:
        if scene.picture is not None:
            self.game, self.axes = self.figure.subplots(1, 2, width_ratios=(1, 1.5))
            self.game.set(xticks=[], yticks=[])
            for side in self.game.spines.values():
                side.set_visible(False)
            self.image = self.game.imshow(scene.picture, interpolation="nearest")
            self.game.set_xlabel(textwrap.fill(self.legend, LEGEND_WIDTH), color=QUIET, fontsize=9)
            self.headline = self.game.set_title("", loc="left")
        else:
            self.axes = self.figure.subplots()
            self.headline = self.figure.suptitle("", x=0.01, ha="left", fontsize=9)
        axes = self.axes
        weights = tau_weights(self.risk)
        if weights is not None:
            heights = MAX_SHADE * np.minimum(weights / max(weights.max(), 3.0), 1.0)
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
        axes.set(xlim=(0, NAME_AT + self._label_width()), xticks=np.linspace(0, 1, 6))
        axes.spines["bottom"].set_bounds(0, 1)
        axes.set_xlabel(f"quantile fraction τ\n{self._marks_legend()}", x=0, ha="left", fontsize=8.5)
        axes.set_ylabel("predicted discounted return")

    def _marks_legend(self) -> str:
        if self.risk.is_neutral:
            return "○ mean   ◆ value that is maximised (the mean)   shaded: weight of each τ"
        shaded = "" if self.risk.tau_map is None else "   shaded: weight of each τ"
        return f"○ mean   ◆ value under {self.risk.label}{shaded}"

    def _draw_action(self, scene: Scene, action: int, name: str, place: float) -> None:
        best = action == scene.chosen
        style = "-" if best else DASHES[action % len(DASHES)]
        line = self.lines[action]
        line.set_ydata(scene.distribution[:, action])
        # Draw thin lines over the thick one, and dashed lines over solid ones.
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
        label.set_text(f"{name} {self._format(scene.values[action])}")
        label.set_fontweight("bold" if best else "normal")

    def _format(self, value: float) -> str:
        """Format a number with the digits that suit the range of the axis."""
        low, high = self.range.ends or (0.0, 1.0)
        width = high - low
        digits = int(np.clip(2 - math.floor(math.log10(width / 10 if width > 10 else width)), 0, 6))
        return f"{value:.{digits}f}"

    def _font(self) -> float:
        return 9.0 if len(self.names) <= 8 else 7.0

    def _line_height(self) -> float:
        """Return the height of a label, as a share of the axes."""
        return self._font() * 1.35 / 72 / (PIXELS[1] / DPI * 0.8)

    def _label_width(self) -> float:
        """Return the space for names at the right, in units of the τ axis."""
        letters = max(len(name) for name in self.names) + 7
        return letters * self._font() * 0.62 / 72 / (PIXELS[0] / DPI * 0.5)
