"""Frames of a video: the environment above the densities, and the quantile functions of every action.

The marks are those of the live page: a circle at the mean, and a diamond at the value under the risk
measure. The weight of each quantile fraction τ is a strip below the quantile functions.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.risk import RiskMeasure
from quantail.viewing.scenes import TAUS, Scene, densities
from quantail.viewing.style import SMALL, colour, new_figure, theme
from quantail.viewing.weights import XLABEL, crossing_note, draw_weights
from quantail.viewing.words import spread_labels, text_width, wrapped

PIXELS = (960, 540)
DPI = 100
# Actions that are not chosen are dashed, so that lines on top of each other are all visible.
DASHES: Sequence[Any] = ("-", (0, (5, 4)), (0, (1.5, 2.5)), (0, (8, 3, 1.5, 3)))
MEAN_AT, VALUE_AT, NAME_AT = 1.04, 1.095, 1.16  # positions on the τ axis
LEFT_SHARE = 0.4  # of the width: the environment and the densities
PICTURE_SHARE = (0.3, 0.62)  # least and most of the height that the picture takes
MIN_PLOT = 0.25  # least share of the width that the quantile functions take
THIN = 1.8  # points: the lines of actions that are not chosen
GRID = 240  # points of a density
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
        self.height = SmoothRange(fps * NARROWING_TIME)
        self.figure = new_figure(PIXELS[0] / DPI, PIXELS[1] / DPI)
        self.figure.set_dpi(DPI)
        self.canvas: Any = FigureCanvasAgg(self.figure)
        self.picture_axes: Any = None
        self.axes: Any = None

    def draw(self, scene: Scene, step: int, score: float) -> NDArray[np.uint8]:
        """Return an RGB picture of a decision."""
        if self.axes is None:
            self._set_up(scene)
        if self.picture_axes is not None and scene.picture is not None:
            self.image.set_data(scene.picture)
        note = "" if self.picture_axes is not None else f"; {self.env} renders no picture"
        self.headline.set_text(f"step {step}, score {score:g}{note}")
        distribution = scene.distribution
        low, high = self.range.update(float(distribution.min()), float(distribution.max()))
        grid = np.linspace(low, high, GRID)
        heights = densities(distribution, grid)
        self.axes.set_ylim(low, high)
        self.density.set(xlim=(low, high), ylim=(0, self.height.update(0, float(heights.max()))[1]))
        places = spread_labels(scene.values, (high - low) * self._line_height(), low, high)
        for action, name in enumerate(self.names):
            best = action == scene.chosen
            line, curve = self.lines[action], self.curves[action]
            line.set_ydata(distribution[:, action])
            curve.set_data(grid, heights[:, action])
            self._draw_line(line, action, 5.0 if best else THIN)
            self._draw_line(curve, action, 3.0 if best else THIN)
            self._draw_marks(scene, action, name, places[action])
        value = self._format(scene.values[scene.chosen])
        reason = "highest mean" if self.risk.is_neutral else f"highest value under {self.risk.label}"
        self.axes.set_title(
            f"chooses “{self.names[scene.chosen]}”: {reason}, {value}", fontweight="bold"
        )
        self.weights.set_xlabel(self._explanation(scene.crossing), loc="left")
        self.canvas.draw()
        return np.asarray(self.canvas.buffer_rgba())[:, :, :3]

    def _set_up(self, scene: Scene) -> None:
        grid = self.figure.add_gridspec(1, 2, width_ratios=(LEFT_SHARE, 1 - LEFT_SHARE))
        right = grid[1].subgridspec(2, 1, height_ratios=(7, 1))
        self.axes = self.figure.add_subplot(right[0])
        self.weights = self.figure.add_subplot(right[1], sharex=self.axes)
        if scene.picture is not None:
            share = self._picture_share(scene.picture)
            left = grid[0].subgridspec(2, 1, height_ratios=(share, 1 - share))
            self.picture_axes = self.figure.add_subplot(left[0], xticks=[], yticks=[])
            self.picture_axes.spines[:].set_visible(False)
            self.image = self.picture_axes.imshow(scene.picture, interpolation="nearest", aspect="equal")
            width = LEFT_SHARE * PIXELS[0] / DPI - 0.2
            self.picture_axes.set_xlabel(
                wrapped(self.legend, width, SMALL), color=theme().quiet, fontsize=SMALL
            )
            self.headline = self.picture_axes.set_title("")
            self.density = self.figure.add_subplot(left[1])
        else:
            self.density = self.figure.add_subplot(grid[0])
            self.headline = self.density.set_title("")
        self.density.set_xlabel("predicted discounted return")
        self.density.set_ylabel("density")
        self._set_up_quantiles()

    def _picture_share(self, picture: NDArray[np.uint8]) -> float:
        """Return the share of the height that lets a picture fill the width, within bounds."""
        width = LEFT_SHARE * PIXELS[0]
        share = picture.shape[0] / picture.shape[1] * width / PIXELS[1]
        return float(np.clip(share, *PICTURE_SHARE))

    def _set_up_quantiles(self) -> None:
        axes = self.axes
        self.lines, self.curves, self.marks, self.labels = [], [], [], []
        for action in range(len(self.names)):
            ink = colour(action)
            self.lines.append(axes.plot(TAUS, TAUS, color=ink)[0])
            self.curves.append(self.density.plot([], [], color=ink)[0])
            ground = theme().ground
            self.marks.append(
                (
                    axes.plot([MEAN_AT], [0], marker="o", ls="", mfc=ground, mec=ink, mew=2)[0],
                    axes.plot([VALUE_AT], [0], marker="D", ls="", mfc=ink, mec=ink)[0],
                    axes.plot([VALUE_AT, NAME_AT], [0, 0], color=ink, lw=0.8)[0],
                )
            )
            self.labels.append(axes.text(NAME_AT + 0.01, 0, "", va="center", fontsize=self._font()))
        draw_weights(self.weights, self.risk)
        axes.set(xlim=(0, self._right_end()), xticks=np.linspace(0, 1, 6))
        axes.tick_params(labelbottom=False)
        for one in (axes, self.weights):
            one.spines["bottom"].set_bounds(0, 1)
        self.weights.xaxis.label.set(fontsize=SMALL, linespacing=1.35)
        axes.set_ylabel("predicted discounted return")

    def _explanation(self, crossing: float | None) -> str:
        """Explain the axis and the marks, and say how many quantiles crossed."""
        value = "value, here the mean" if self.risk.is_neutral else f"value under {self.risk.label}"
        note = crossing_note(crossing)
        # The last line stays when it is empty, so that the axes do not jump.
        return f"{XLABEL}      ○ mean   ◆ {value}\n{note or ' '}"

    def _draw_line(self, line: Any, action: int, width: float) -> None:
        """Draw a line, solid if it is thick; thin lines lie over the thick one."""
        dashes = action % len(DASHES)
        thick = width > THIN
        line.set(linewidth=width, linestyle="-" if thick else DASHES[dashes])
        line.set_zorder(2 if thick else 3 + dashes / 10)

    def _draw_marks(self, scene: Scene, action: int, name: str, place: float) -> None:
        best = action == scene.chosen
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
        return SMALL if len(self.names) <= 8 else 7.0

    def _line_height(self) -> float:
        """Return the height of a label, as a share of the axes."""
        return self._font() * 1.35 / 72 / (PIXELS[1] / DPI * 0.65)

    def _right_end(self) -> float:
        """Return the end of the τ axis that leaves enough space for the names of actions."""
        width = PIXELS[0] / DPI * (1 - LEFT_SHARE) - 0.8  # inches of the plot, without its ticks
        names = max(text_width(f"{name} −000.00", self._font(), bold=True) for name in self.names)
        return (NAME_AT + 0.01) / max(1 - names / width, MIN_PLOT)
