"""Return distributions in pictures: three views, mean and CVaR, the Bellman operator, quantile loss."""

from pathlib import Path

import numpy as np

from quantail.distributions import ReturnDistribution
from quantail.envs.worlds import WORLDS, solve
from quantail.risk import CVaR
from tools.docs.figures._ideas import SMALL, bars, drawing, gambles, quantile_plot, steps


def draw(folder: Path, dark: bool) -> None:
    three_views(folder, dark)
    read_off(folder, dark)
    bellman(folder, dark)
    quantile_loss(folder, dark)


def three_views(folder: Path, dark: bool) -> None:
    """The probability of every return, the cdf and the quantile function of five gambles."""
    z = gambles()
    with drawing(6.6, dark, folder, "ideas-three-views") as (figure, colours):
        blue, orange = colours.series[:2]
        top, middle, bottom = figure.subplots(3, 1)
        bars(top, z, color=blue, linewidth=2.5)
        top.set_title("Probability of each return")
        top.set_xlabel("return")
        top.set_ylabel("probability")
        tau, returns = steps(z)
        middle.plot(returns, tau, color=blue)
        middle.set_title("Cumulative distribution function F")
        middle.set_xlabel("return z")
        middle.set_ylabel("F(z) = P(Z ≤ z)")
        middle.set_ylim(0, 1)
        quantile_plot(bottom, z, color=blue)
        bottom.set_title("Quantile function F⁻¹: the same curve, axes exchanged")
        bottom.set_xlabel("quantile fraction τ")
        bottom.set_ylabel("return Z_τ")
        at = 0.25
        quantile = float(z.quantile([at])[0])
        middle.plot([-6, quantile, quantile], [at, at, 0], color=orange, linestyle="--", linewidth=1.2)
        bottom.plot([at, at, 0], [-6, quantile, quantile], color=orange, linestyle="--", linewidth=1.2)
        for axes in (top, middle):
            axes.set_xlim(-6, 21)
        bottom.set_ylim(-6, 21)
        words = f"τ = ¼: the worst quarter ends at {quantile:g}"
        middle.text(quantile + 1, 0.04, words, color=orange, fontsize=SMALL)
        bottom.text(at + 0.02, -4.8, words, color=orange, fontsize=SMALL)


def read_off(folder: Path, dark: bool) -> None:
    """Mean, VaR and CVaR on the quantile function."""
    z, eta = gambles(), 0.25
    with drawing(3.4, dark, folder, "ideas-read-off") as (figure, colours):
        blue, orange, green = colours.series[:3]
        axes = figure.subplots()
        tau, returns = steps(z)
        tail = tau <= eta
        value, quantile = float(CVaR(eta).value(z)), float(z.quantile([eta])[0])
        edge = np.append(tau[tail], eta), np.append(returns[tail], quantile)
        axes.axvspan(0, eta, color=colours.shade, linewidth=0)
        axes.plot(tau, returns, color=blue, label="quantile function")
        axes.plot([0, 1], [float(z.mean())] * 2, color=green, linestyle="--")
        axes.text(
            0.99, float(z.mean()) - 0.4, f"mean {float(z.mean()):.1f}", ha="right", va="top", color=green
        )
        axes.plot([0, eta], [value] * 2, color=orange, linewidth=2)
        axes.text(
            eta + 0.02,
            value,
            f"CVaR(¼) {value:.2f}: mean height in the shade",
            va="center",
            color=orange,
        )
        axes.plot(eta, quantile, "o", color=colours.ink, markersize=5)
        axes.text(eta + 0.03, quantile + 0.2, f"VaR(¼) {quantile:g}: height at τ = ¼", va="center")
        axes.fill_between(*edge, value, color=orange, alpha=0.25, linewidth=0)
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "¼", "½", "¾", "1"])
        axes.set_xlabel("quantile fraction τ")
        axes.set_ylabel("return Z_τ")


def bellman(folder: Path, dark: bool) -> None:
    """One application of the distributional Bellman operator at the cliff."""
    world = WORLDS["Quantail/WindyCliff-v0"]()
    solution = solve(world)
    start, then = world.states[0], (1, 0)
    following = solution.distribution(then)
    result = solution.distributions[start, 0]
    fallen = ReturnDistribution.of([world.step_cost + world.fall])
    gamma = world.discount
    rows = [
        ("1  Z(x′, a′): the distribution at the next state", [(following, 0, 1.0)]),
        (f"2  γ Z(x′, a′): shrunk by γ = {gamma}", [(following.affine(0.0, gamma), 0, 1.0)]),
        ("3  r + γ Z(x′, a′): moved by the reward r = −1", [(following.affine(-1.0, gamma), 0, 1.0)]),
        (
            "4  mixed over what may happen: 95 % no fall, 5 % a fall",
            [(following.affine(-1.0, gamma), 0, 0.95), (fallen, 1, 0.05)],
        ),
    ]
    with drawing(5.6, dark, folder, "ideas-bellman") as (figure, colours):
        panels = figure.subplots(len(rows), 1, sharex=True)
        for axes, (title, parts) in zip(panels, rows, strict=True):
            for z, series, weight in parts:
                axes.vlines(
                    z.atoms.numpy(), 0, weight * z.probabilities().numpy(),
                    color=colours.series[series], linewidth=4,
                )  # fmt: skip
            axes.set_ylim(0, 1)
            axes.set_yticks([0, 1])
            axes.set_title(title)
        mean = float(result.mean())
        panels[-1].plot(mean, 0.5, "o", color=colours.ink, markersize=5)
        panels[-1].text(mean - 0.12, 0.5, f"mean −{-mean:.2f}", va="center", ha="right")
        panels[-1].text(-7, 0.12, "fall", color=colours.series[1], ha="center")
        panels[-1].set_xlabel("return")
        figure.supylabel("probability", fontsize=10)


def quantile_loss(folder: Path, dark: bool) -> None:
    """The loss of one error, and its mean over the returns as a function of the prediction."""
    z = gambles()
    with drawing(5.2, dark, folder, "ideas-quantile-loss") as (figure, colours):
        top, bottom = figure.subplots(2, 1)
        errors, grid = np.linspace(-3, 3, 121), np.linspace(-5, 20, 501)
        for tau, colour in zip((0.2, 0.4, 0.8), colours.series, strict=False):
            slope = np.where(errors < 0, 1 - tau, tau)
            huber = np.where(np.abs(errors) <= 1, errors**2 / 2, np.abs(errors) - 0.5)
            top.plot(errors, slope * np.abs(errors), color=colour, label=f"τ = {tau}")
            top.plot(errors, slope * huber, color=colour, linestyle=":", linewidth=1.2)
            delta = z.atoms.numpy()[None, :] - grid[:, None]
            mean = (np.where(delta < 0, 1 - tau, tau) * np.abs(delta)) @ z.probabilities().numpy()
            bottom.plot(grid, mean, color=colour)
            quantile = float(z.quantile([tau])[0])
            bottom.plot(quantile, mean[np.abs(grid - quantile).argmin()], "o", color=colour)
        top.legend(loc="upper center")
        top.set_ylim(0, 2.2)
        top.set_xlabel("error δ = sampled return − prediction")
        top.set_ylabel("loss")
        top.set_title("Loss of one sample (dotted: Huber, κ = 1)")
        bottom.set_ylim(0, 9)
        bottom.set_xlabel("prediction")
        bottom.set_ylabel("mean loss")
        bottom.set_title("Mean over all returns: lowest at the τ-quantile (●)")
