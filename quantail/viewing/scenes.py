"""One decision of an agent, with all that is shown of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quantail.acting.agent import Agent
from quantail.risk import Neutral, RiskMeasure, midpoints

Array = NDArray[np.float64]
TAUS = midpoints(100).numpy()


@dataclass(frozen=True)
class Scene:
    """What is seen, and what the agent expects of every action there."""

    picture: NDArray[np.uint8] | None
    law: Array  # [taus, actions]
    means: Array  # [actions]
    values: Array  # [actions], Q_β
    chosen: int  # counted from 0


def look(agent: Agent, observation: Any, risk: RiskMeasure, picture: NDArray[np.uint8] | None) -> Scene:
    """What the agent expects here, and what it would do under a risk measure."""
    means = agent.values(observation, "neutral")
    values = means if isinstance(risk, Neutral) else agent.values(observation, risk)
    law = agent.quantiles(observation, TAUS).astype(np.float64)
    return Scene(picture, law, means, values, int(values.argmax()))


def densities(law: Array, grid: Array) -> Array:
    """A smooth density of each action's return on a grid: [grid, actions].

    A Gaussian around each quantile, as wide as its neighbours are apart and no narrower than two points
    of the grid, so that a sure return is a peak that can be seen.
    """
    rising = np.sort(law, axis=0)  # [taus, actions]
    reach = max(2, len(rising) // 20)
    padded = np.pad(rising, ((reach, reach), (0, 0)), mode="edge")
    apart = (padded[2 * reach :] - padded[: -2 * reach]) / 4  # [taus, actions]
    width = np.maximum(apart, 2 * (grid[1] - grid[0]))
    z = (grid[:, None, None] - rising) / width  # [grid, taus, actions]
    return np.asarray((np.exp(-0.5 * z**2) / (width * np.sqrt(2 * np.pi))).mean(axis=1))


def level_weights(risk: RiskMeasure) -> Array:
    """How much each of TAUS counts under a measure: 1 throughout for the mean."""
    edges = torch.linspace(0, 1, len(TAUS) + 1, dtype=torch.float64)
    return np.diff(risk.inverse(edges).numpy()) * len(TAUS)
