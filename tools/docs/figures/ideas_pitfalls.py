"""Pitfalls of IQN: a flipped indicator, and what κ does to the quantiles that are learned."""

from pathlib import Path

import numpy as np
from scipy import optimize, stats

from tools.docs.figures._ideas import SMALL, drawing, gambles, steps


def draw(folder: Path, dark: bool) -> None:
    flipped(folder, dark)
    kappa(folder, dark)


def flipped(folder: Path, dark: bool) -> None:
    """The quantile function that is learned with the indicator right and wrong."""
    z = gambles()
    with drawing(3.2, dark, folder, "ideas-flipped") as (figure, colours):
        axes = figure.subplots()
        blue, orange = colours.series[:2]
        tau, returns = steps(z)
        axes.axvspan(0, 0.1, color=colours.shade, linewidth=0)
        axes.plot(tau, returns, color=blue)
        axes.plot(1 - tau, returns, color=orange, linestyle="--")
        axes.text(0.12, -3.3, "right: cvar:0.1 reads the worst returns", color=blue, fontsize=SMALL)
        axes.text(0.12, 16.5, "flipped: cvar:0.1 reads the best returns", color=orange, fontsize=SMALL)
        axes.set_xlim(0, 1)
        axes.set_xlabel("quantile fraction τ")
        axes.set_ylabel("learned return Z_τ")


def learned(tau: float, kappa: float) -> float:
    """Return the minimiser of the quantile Huber loss for normally distributed returns."""
    if kappa == 0:
        return float(stats.norm.ppf(tau))
    grid = np.linspace(-9, 9, 18_001)
    weights = stats.norm.pdf(grid) * (grid[1] - grid[0])

    def slope(prediction: float) -> float:
        delta = grid - prediction
        return float((np.where(delta < 0, 1 - tau, tau) * np.clip(delta, -kappa, kappa) * weights).sum())

    return float(optimize.brentq(slope, -6, 6))


def kappa(folder: Path, dark: bool) -> None:
    """The quantiles of a normal return that the loss finds with κ of 0, 1 and 10."""
    taus = np.linspace(0.01, 0.99, 99)
    with drawing(3.2, dark, folder, "ideas-kappa") as (figure, colours):
        axes = figure.subplots()
        for value, colour, name in zip(
            (0, 1, 10), colours.series, ("κ = 0: exact", "κ = 1", "κ = 10"), strict=False
        ):
            axes.plot(taus, [learned(tau, value) for tau in taus], color=colour, label=name)
        axes.legend(loc="upper left")
        axes.set_xlim(0, 1)
        axes.set_xlabel("quantile fraction τ")
        axes.set_ylabel("quantile that is learned")
        axes.set_title("Returns with a normal distribution, standard deviation 1")
