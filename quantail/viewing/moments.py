"""Moments of a game that are worth a look."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.acting.agent import Agent
from quantail.envs import EnvSource, make
from quantail.envs.adapt import Adapter
from quantail.errors import QuantailError
from quantail.risk import midpoints

LOOK_AT = 500  # steps of the episode


@dataclass(frozen=True)
class Moment:
    """What was seen at one step of an episode, and why it was chosen."""

    step: int
    observation: Any
    picture: NDArray[np.uint8] | None  # RGB, where the environment has one
    why: str = ""


def find_moments(agent: Agent, env: EnvSource | None = None, *, seed: int = 1) -> list[Moment]:
    """Of an episode: its start, where actions differ most, and where the return is least certain."""
    played = with_pictures(env or agent.env, agent)
    try:
        observation, _ = played.reset(seed=seed)
        first = Moment(0, observation, picture_of(played), "the start")
        decisive, uncertain = first, first
        most_apart, most_spread = -np.inf, 1e-6
        taus = midpoints(32).numpy()
        for step in range(LOOK_AT):
            values = agent.values(observation)
            action = agent.act(observation)
            law = agent.quantiles(observation, taus)[:, int(action) - agent.actions.start]
            if np.ptp(values) > most_apart:
                most_apart = np.ptp(values)
                decisive = Moment(step, observation, picture_of(played), "actions differ most")
            if law.std() > most_spread:
                most_spread = law.std()
                uncertain = Moment(step, observation, picture_of(played), "return least certain")
            observation, _, terminated, truncated, _ = played.step(action)
            if terminated or truncated:
                break
    finally:
        played.close()
    if uncertain.step == decisive.step:
        decisive = replace(decisive, why="actions differ most, and return least certain")
    unique = {moment.step: moment for moment in (first, uncertain, decisive)}
    return [unique[step] for step in sorted(unique)]


def with_pictures(source: EnvSource, agent: Agent) -> Adapter:
    """The environment with a renderer where it has one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium's, of an environment without one
        try:
            return make(source, agent.settings, render_mode="rgb_array")
        except QuantailError:
            return make(source, agent.settings)


def picture_of(env: Adapter) -> NDArray[np.uint8] | None:
    """The environment as it is now, in RGB, where it has such a picture."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shown = env.render()
    except Exception:  # a renderer that fails costs the picture alone
        return None
    fits = isinstance(shown, np.ndarray) and shown.ndim == 3 and shown.shape[2] == 3
    return np.array(shown) if fits else None
