"""Moments of a game that are worth a look."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.acting.agent import Agent
from quantail.envs import EnvSource
from quantail.envs.names import action_names
from quantail.risk import midpoints
from quantail.viewing.pictures import picture_of, with_pictures

LOOK_AT = 500  # steps of the episode


@dataclass(frozen=True)
class Moment:
    """What was seen at one step of an episode, and why it was chosen."""

    step: int
    observation: Any
    picture: NDArray[np.uint8] | None  # RGB, where the environment has one
    why: str = ""
    actions: tuple[str, ...] = ()  # what they are called


def find_moments(agent: Agent, env: EnvSource | None = None, *, seed: int = 1) -> list[Moment]:
    """Of an episode: its start, where actions differ most, and where the return is least certain."""
    played = with_pictures(env or agent.env, agent)
    try:
        observation, _ = played.reset(seed=seed)
        names = tuple(action_names(played))
        first = Moment(0, observation, picture_of(played), "the start", names)
        decisive: Moment | None = None
        uncertain: Moment | None = None
        most_apart, most_spread = -np.inf, 1e-6
        taus = midpoints(32).numpy()
        for step in range(LOOK_AT):
            values = agent.values(observation)
            action = agent.act(observation)
            law = agent.quantiles(observation, taus)[:, int(action) - agent.actions.start]
            if np.ptp(values) > most_apart:
                most_apart = np.ptp(values)
                decisive = Moment(step, observation, picture_of(played), "actions differ most", names)
            if law.std() > most_spread:
                most_spread = law.std()
                uncertain = Moment(step, observation, picture_of(played), "return least certain", names)
            observation, _, terminated, truncated, _ = played.step(action)
            if terminated or truncated:
                break
    finally:
        played.close()
    by_step: dict[int, list[Moment]] = {}
    for moment in (first, decisive, uncertain):
        if moment is not None:
            by_step.setdefault(moment.step, []).append(moment)
    return [_together(by_step[step]) for step in sorted(by_step)]


def _together(same: list[Moment]) -> Moment:
    """One moment that was chosen for several reasons."""
    *words, last = [moment.why for moment in same]
    return replace(same[0], why=f"{', '.join(words)}, and {last}" if words else last)
