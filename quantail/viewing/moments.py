"""Select interesting moments of an episode."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.agents.agent import Agent
from quantail.envs import EnvSource
from quantail.envs.actions import Mask
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
    allowed: Mask | None = None  # the actions that are, [actions]; None if all are


def find_moments(agent: Agent, env: EnvSource | None = None, *, seed: int = 1) -> list[Moment]:
    """Return the start of an episode, and the steps with the most different values and widest return."""
    played = with_pictures(env or agent.env, agent)

    def moment_at(step: int, why: str) -> Moment:
        picture = picture_of(played)
        return Moment(step, observation, picture, why, names, played.action_mask)

    try:
        observation, _ = played.reset(seed=seed)
        names = tuple(played.action_names())
        first = moment_at(0, "the start")
        decisive: Moment | None = None
        uncertain: Moment | None = None
        most_different, most_spread = -np.inf, 1e-6
        taus = midpoints(32).numpy()
        for step in range(MAX_STEPS):
            values = agent.values(observation)
            taken = agent.act(observation, mask=played.action_mask)
            action = int(agent.actions.from_env(taken))
            distribution = agent.quantiles(observation, taus)[:, action]
            if np.ptp(values) > most_different:
                most_different = np.ptp(values)
                decisive = moment_at(step, "actions differ most")
            if distribution.std() > most_spread:
                most_spread = distribution.std()
                uncertain = moment_at(step, "return is most uncertain")
            observation, _, terminated, truncated, _ = played.step(taken)
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
