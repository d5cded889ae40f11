"""Select interesting moments of an episode."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.agents.agent import Agent
from quantail.envs import EnvSource
from quantail.taus import midpoints
from quantail.viewing.pictures import picture_of, with_pictures

MAX_STEPS = 500  # of the episode


@dataclass(frozen=True)
class Moment:
    """One step of an episode, and why it was selected."""

    step: int
    observation: Any
    picture: NDArray[np.uint8] | None  # RGB, if the environment renders one
    why: str = ""
    actions: tuple[str, ...] = ()  # their names


def find_moments(agent: Agent, env: EnvSource | None = None, *, seed: int = 1) -> list[Moment]:
    """Return the start of an episode, and the steps with the most different values and widest return."""
    played = with_pictures(env or agent.env, agent)
    try:
        observation, _ = played.reset(seed=seed)
        names = tuple(played.action_names())
        first = Moment(0, observation, picture_of(played), "the start", names)
        decisive: Moment | None = None
        uncertain: Moment | None = None
        most_different, most_spread = -np.inf, 1e-6
        taus = midpoints(32).numpy()
        for step in range(MAX_STEPS):
            values = agent.values(observation)
            action = agent.act(observation)
            distribution = agent.quantiles(observation, taus)[:, int(action) - agent.actions.start]
            if np.ptp(values) > most_different:
                most_different = np.ptp(values)
                decisive = Moment(step, observation, picture_of(played), "actions differ most", names)
            if distribution.std() > most_spread:
                most_spread = distribution.std()
                uncertain = Moment(
                    step, observation, picture_of(played), "return is most uncertain", names
                )
            observation, _, terminated, truncated, _ = played.step(action)
            if terminated or truncated:
                break
    finally:
        played.close()
    by_step: dict[int, list[Moment]] = {}
    for moment in (first, decisive, uncertain):
        if moment is not None:
            by_step.setdefault(moment.step, []).append(moment)
    return [_merge(by_step[step]) for step in sorted(by_step)]


def _merge(same: list[Moment]) -> Moment:
    """Merge moments of the same step that were selected for different reasons."""
    *reasons, last = [moment.why for moment in same]
    return replace(same[0], why=f"{', '.join(reasons)}, and {last}" if reasons else last)
