"""The five network architectures, and how each represents one and the same return distribution."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from quantail.distributions import ReturnDistribution
from tools.docs.figures._ideas import SMALL, Palette, bars, drawing, gambles, steps

ROW = 1.45  # inches
# Name, what stands beside f, what comes out, what is learned
ROWS = [
    ("DQN", False, "1 number", "the mean Q(x, a)"),
    ("C51", False, "51 probabilities", "probabilities of fixed returns"),
    ("QR-DQN", False, "N returns", "returns at fixed τ"),
    ("IQN", True, "1 return", "the return at any τ that you give it"),
    ("FQF", True, "N returns", "the returns at τ that it proposes itself"),
]


def draw(folder: Path, dark: bool) -> None:
    z = gambles()
    with drawing(ROW * len(ROWS), dark, folder, "ideas-architectures") as (figure, colours):
        grid = figure.subplots(len(ROWS), 2, width_ratios=[1.75, 1])
        for index, (row, (left, right)) in enumerate(zip(ROWS, grid, strict=True)):
            _network(left, index, row, colours)
            _output(right, index, z, colours)


def _network(axes: Axes, index: int, row: tuple[str, bool, str, str], colours: Palette) -> None:
    name, with_tau, out, what = row
    axes.set_xlim(0, 10)
    axes.set_ylim(0, 4.4)
    axes.axis("off")
    axes.text(0, 4.3, name, weight="bold", va="top", size=11)
    axes.text(2.7 if len(name) > 4 else 1.9, 4.25, what, va="top", size=SMALL, color=colours.quiet)
    level = 1.9
    blue, orange = colours.series[0], colours.series[1]

    def box(x: float, y: float, text: str, width: float, edge: str) -> None:
        shape = FancyBboxPatch(
            (x - width / 2, y - 0.5),
            width,
            1.0,
            boxstyle="round,pad=0.02,rounding_size=0.15",
            facecolor=colours.ground,
            edgecolor=edge,
            linewidth=1.3,
        )
        axes.add_patch(shape)
        axes.text(x, y, text, ha="center", va="center")

    def arrow(start: tuple[float, float], end: tuple[float, float], bend: float = 0.0) -> None:
        style = f"arc3,rad={bend}"
        axes.add_patch(
            FancyArrowPatch(
                start,
                end,
                arrowstyle="-|>",
                mutation_scale=8,
                color=colours.quiet,
                linewidth=1,
                shrinkA=0,
                shrinkB=0,
                connectionstyle=style,
            )
        )

    axes.text(0.1, level, "x", ha="left", va="center", style="italic")
    arrow((0.6, level), (1.2, level))
    box(1.8, level, "ψ", 1.1, blue)
    if with_tau:
        axes.text(4.0, level, "⊙", ha="center", va="center", size=13)
        arrow((2.4, level), (3.6, level))
        arrow((4.3, level), (4.8, level))
        box(4.0, level - 1.35, "φ", 1.1, orange)
        arrow((4.0, level - 0.8), (4.0, level - 0.35))
        if index == 3:
            axes.text(2.0, level - 1.35, "τ", ha="center", va="center", style="italic", color=orange)
            arrow((2.3, level - 1.35), (3.4, level - 1.35))
        else:
            box(2.1, level - 1.35, "P → τ̂", 1.7, colours.series[2])
            arrow((1.8, level - 0.55), (1.8, level - 0.83))
            arrow((3.0, level - 1.35), (3.4, level - 1.35))
    else:
        arrow((2.4, level), (4.8, level))
    box(5.4, level, "f", 1.1, blue)
    arrow((6.0, level), (6.6, level))
    axes.text(6.7, level + 0.05, f"{out}\nper action", va="center", size=SMALL, linespacing=1.15)


def _output(axes: Axes, index: int, z: ReturnDistribution, colours: Palette) -> None:
    colour = colours.series[index] if index < 4 else colours.series[4]
    tau, returns = steps(z)
    axes.tick_params(length=2, labelsize=8)
    if index == 1:
        support = np.linspace(-10, 25, 51)
        probabilities = np.zeros(51)
        for atom, weight in zip(z.atoms.numpy(), z.probabilities().numpy(), strict=True):
            place = (atom + 10) / 0.7
            low = int(np.floor(place))
            probabilities[low] += weight * (low + 1 - place)
            probabilities[low + 1] += weight * (place - low)
        bars(axes, ReturnDistribution.of(support, probabilities), color=colour, linewidth=1.6)
        axes.set_xlabel("return (fixed places)", size=8)
        axes.set_ylabel("probability", size=8)
        axes.set_yticks([])
        return
    if index == 0:
        axes.plot([0, 1], [float(z.mean())] * 2, color=colour, linewidth=2.5)
    elif index == 2:
        taus = (np.arange(8) + 0.5) / 8
        for mid, value in zip(taus, z.quantile(taus).numpy(), strict=True):
            axes.plot([mid - 1 / 16, mid + 1 / 16], [value] * 2, color=colour, linewidth=1.5)
            axes.plot(mid, value, "o", color=colour, markersize=3.5)
    elif index == 3:
        grid = np.linspace(0.002, 0.998, 250)
        smooth = np.convolve(np.pad(z.quantile(grid).numpy(), 6, mode="edge"), np.ones(13) / 13, "valid")
        axes.plot(grid, smooth, color=colour)
    else:
        edges = np.array([0, 0.03, 0.1, 0.22, 0.4, 0.6, 0.8, 0.94, 1.0])
        mids = (edges[1:] + edges[:-1]) / 2
        for low, high, mid in zip(edges[:-1], edges[1:], mids, strict=True):
            value = float(z.quantile([mid])[0])
            axes.plot([low, high], [value] * 2, color=colour, linewidth=1.5)
            axes.plot(mid, value, "o", color=colour, markersize=3.5)
            axes.axvline(high, color=colours.line, linewidth=0.5, zorder=0)
    if index:
        axes.plot(tau, returns, color=colours.quiet, linewidth=0.7, alpha=0.7, zorder=0)
    axes.set_xlim(0, 1)
    axes.set_ylim(-6, 21)
    axes.set_xticks([0, 1])
    axes.set_yticks([0, 20])
    axes.set_xlabel("τ", size=8, labelpad=-6)
    axes.set_ylabel("return", size=8, labelpad=-6)
