"""Two theories of risk: what distortions do to a distribution, and Allais' choices in a triangle."""

from pathlib import Path

import numpy as np
import torch
from scipy import stats

from quantail.risk import Distortion, ExpUtility, parse_risk
from tools.docs.figures._ideas import SMALL, Array, drawing

MEASURES = ("cvar:0.25", "wang:-0.75", "pow:-2", "cpw:0.71", "norm:3", "wang:0.75")
LOTTERIES = {"1A": (0.0, 0.0), "1B": (0.01, 0.10), "2A": (0.89, 0.0), "2B": (0.90, 0.10)}


def draw(folder: Path, dark: bool) -> None:
    distorted(folder, dark)
    triangles(folder, dark)


def distorted(folder: Path, dark: bool) -> None:
    """Each distortion β beside a distribution before and after it."""
    returns = np.linspace(-6, 10, 641)
    density = 0.3 * stats.norm.pdf(returns, -1.5, 0.9) + 0.7 * stats.norm.pdf(returns, 3, 1.4)
    below = 0.3 * stats.norm.cdf(returns, -1.5, 0.9) + 0.7 * stats.norm.cdf(returns, 3, 1.4)
    taus = np.linspace(0, 1, 201)
    with drawing(8.6, dark, folder, "ideas-distortions") as (figure, colours):
        grid = figure.subplots(len(MEASURES), 2, width_ratios=[1, 2.2])
        for index, (name, (left, right)) in enumerate(zip(MEASURES, grid, strict=True)):
            risk = parse_risk(name)
            assert isinstance(risk, Distortion)
            colour = colours.series[index]
            left.plot([0, 1], [0, 1], color=colours.line, linewidth=1)
            left.plot(taus, risk(taus), color=colour)
            left.set_xlim(0, 1)
            left.set_ylim(0, 1)
            left.set_xticks([0, 1])
            left.set_yticks([0, 1])
            left.set_title(f"{name}", color=colours.ink)
            after = _distorted(risk, returns, below)
            right.fill_between(returns, density, color=colours.line, alpha=0.6, linewidth=0)
            right.plot(returns, after, color=colour)
            step = returns[1] - returns[0]
            value = float((returns * after).sum() * step)
            mean = float((returns * density).sum() * step)
            right.axvline(mean, color=colours.quiet, linewidth=1, linestyle=":")
            right.axvline(value, color=colour, linewidth=1.2)
            label = f"value {value:.2f}".replace("-", "−")
            right.text(10, right.get_ylim()[1] * 0.92, label, ha="right", va="top", fontsize=SMALL)
            right.set_yticks([])
            right.set_ylim(0)
            right.set_xlim(-6, 10)
            right.spines["left"].set_visible(False)
            if index < len(MEASURES) - 1:
                right.tick_params(labelbottom=False)
                left.tick_params(labelbottom=False)
        grid[-1][0].set_xlabel("τ")
        grid[-1][1].set_xlabel("return")
        grid[0][0].set_title("cvar:0.25 · β(τ)")
        grid[0][1].set_title(f"density: neutral (grey, mean {mean:.2f}), distorted")


def _distorted(risk: Distortion, returns: Array, below: Array) -> Array:
    """Return the density of Z at β(τ), whose distribution function is β⁻¹(F(z))."""
    cumulated = risk.inverse(torch.from_numpy(below)).numpy()
    return np.gradient(cumulated, returns)


def triangles(folder: Path, dark: bool) -> None:
    """Allais' four lotteries, with curves of equal value under a utility and under a distortion."""
    worst, best = np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201))
    panels = [
        ("expected utility, exp-utility:2", _expected_utility),
        ("distortion, pow:-2", _distorted_value),
    ]
    bottom = np.linspace(0.1, 0.9, 9)
    side = np.linspace(0.08, 0.96, 12)
    with drawing(6.4, dark, folder, "ideas-allais") as (figure, colours):
        for axes, (title, value) in zip(figure.subplots(2, 1), panels, strict=True):
            values = np.where(worst + best <= 1.0, value(worst, best), np.nan)
            edge = np.concatenate([value(bottom, 0 * bottom), value(0 * side, side)])
            levels = np.unique(edge.round(6))
            axes.contour(worst, best, values, levels=levels, colors=[colours.line], linewidths=0.8)
            for pair, colour in ((("1A", "1B"), colours.series[0]), (("2A", "2B"), colours.series[1])):
                safer, gamble = (np.array(LOTTERIES[one]) for one in pair)
                equal = value(*safer)
                axes.contour(
                    worst, best, values, levels=[equal], colors=[colour], linestyles="--", linewidths=1.3
                )
                axes.plot(*zip(safer, gamble, strict=True), color=colour, linewidth=1)
                gambles = value(*gamble) > equal
                for name, point, taken in ((pair[0], safer, not gambles), (pair[1], gamble, gambles)):
                    axes.plot(
                        *point, "o", color=colour, markerfacecolor=colour if taken else colours.ground,
                        markersize=7, clip_on=False, zorder=5,
                    )  # fmt: skip
                    axes.annotate(
                        name, point, (7, 6), textcoords="offset points", fontsize=SMALL,
                        weight="bold" if taken else "normal",
                    )  # fmt: skip
            axes.plot([0, 1, 0, 0], [0, 0, 1, 0], color=colours.quiet, linewidth=1)
            axes.set_xlim(0, 1.03)
            axes.set_ylim(0, 0.6)
            axes.set_title(title)
            axes.set_xlabel("probability of 0 (worst)")
            axes.set_ylabel("probability of 5 (best)")


def _expected_utility(worst: Array, best: Array) -> Array:
    """Return E[U(Z)] for the outcomes 0, 1 and 5."""
    u0, u1, u5 = ExpUtility(2.0).utility(torch.tensor([0.0, 1.0, 5.0], dtype=torch.float64)).tolist()
    return u0 * worst + u1 * (1 - worst - best) + u5 * best


def _distorted_value(worst: Array, best: Array) -> Array:
    """Return Q_β for pow:-2, which counts P(Z ≥ z) to the third power, for the outcomes 0, 1 and 5."""
    return (1 - worst) ** 3 + 4 * best**3
