"""One decision of an agent, with everything that is shown about it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quantail.agents.agent import Agent
from quantail.envs.actions import Mask
from quantail.risk import RiskMeasure
from quantail.taus import midpoints

Array = NDArray[np.float64]
TAUS = midpoints(100).numpy()


@dataclass(frozen=True)
class Scene:
    """The picture of a state, and the predicted return of every action in it."""

    picture: NDArray[np.uint8] | None
    distribution: Array  # [taus, actions], at TAUS, sorted
    means: Array  # [actions]
    values: Array  # [actions], Q_β under the risk measure
    chosen: int  # the best allowed action under the risk measure, counted from 0
    crossing: float | None = None  # share of neighbouring quantiles out of order before they were sorted
    allowed: Mask | None = None  # [actions]; None if all are


def make_scene(
    agent: Agent,
    observation: Any,
    risk: RiskMeasure,
    picture: NDArray[np.uint8] | None,
    allowed: Mask | None = None,
) -> Scene:
    """Predict the return of every action, and choose the best allowed one under the risk measure."""
    returns = agent.returns(observation)
    means = returns.mean()
    values = means if risk.is_neutral else returns.value(risk)
    distribution = np.sort(returns.quantile(TAUS).astype(np.float64), axis=0)
    chosen = int((values if allowed is None else np.where(allowed, values, -np.inf)).argmax())
    return Scene(picture, distribution, means, values, chosen, returns.crossing(TAUS), allowed)


def densities(distribution: Array, grid: Array) -> Array:
    """Return a smooth density of each action's return on a grid: [grid, actions].

    The density is a mixture of Gaussians, one at each quantile. Its width is the local distance between
    quantiles, and at least two grid points, so that a deterministic return shows as a peak.
    """
    increasing = np.sort(distribution, axis=0)  # [taus, actions]
    reach = max(2, len(increasing) // 20)
    padded = np.pad(increasing, ((reach, reach), (0, 0)), mode="edge")
    spacing = (padded[2 * reach :] - padded[: -2 * reach]) / 4  # [taus, actions]
    width = np.maximum(spacing, 2 * (grid[1] - grid[0]))
    z = (grid[:, None, None] - increasing) / width  # [grid, taus, actions]
    return np.asarray((np.exp(-0.5 * z**2) / (width * np.sqrt(2 * np.pi))).mean(axis=1))


def tau_weights(risk: RiskMeasure) -> Array | None:
    """Return the weight of each of TAUS under a distortion; all weights are 1 for the mean.

    None for a measure that is not a distortion of τ, such as entropic risk.
    """
    weights = risk.tau_weights(torch.linspace(0, 1, len(TAUS) + 1, dtype=torch.float64))
    return None if weights is None else np.asarray(weights.numpy() * len(TAUS))
