"""Moments of a game that are worth a look."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.acting.agent import Agent
from quantail.envs import EnvSource, make
from quantail.envs.adapt import Adapter
from quantail.envs.names import action_names
from quantail.errors import QuantailError
from quantail.risk import midpoints
from quantail.viewing.pictures import as_rgb

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


def with_pictures(source: EnvSource, agent: Agent) -> Adapter:
    """The environment with a renderer where it has one."""
    try:
        return make(source, agent.settings, render_mode="rgb_array")
    except QuantailError:
        return make(source, agent.settings)


def picture_of(env: Adapter) -> NDArray[np.uint8] | None:
    """The environment as it is now, in RGB, where it has such a picture."""
    try:
        with _no_display():
            shown = env.render()
    except Exception:  # a renderer that fails costs the picture alone
        return None
    return as_rgb(shown)


@contextmanager
def _no_display() -> Iterator[None]:
    """Spare SDL the search for a display, and the user its complaint, where there is none."""
    names = ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY")
    if any(os.environ.get(name) for name in names):
        yield
        return
    os.environ["SDL_VIDEODRIVER"] = "dummy"
    try:
        yield
    finally:
        del os.environ["SDL_VIDEODRIVER"]
