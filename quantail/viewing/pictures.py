"""Render environments as RGB pictures."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.agents.agent import Agent
from quantail.envs import EnvSource, make
from quantail.envs.adapt import Adapter
from quantail.errors import QuantailError


def with_pictures(source: EnvSource, agent: Agent) -> Adapter:
    """Make the environment, with a renderer if it has one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium warns about environments without a renderer
        try:
            return make(source, agent.config.environment, render_mode="rgb_array")
        except QuantailError:
            return make(source, agent.config.environment)


def picture_of(env: Adapter) -> NDArray[np.uint8] | None:
    """Render the current state in RGB; None if the environment cannot."""
    try:
        with _no_display(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return as_rgb(env.render())
    except Exception:  # if the renderer fails, only the picture is missing
        return None


def as_rgb(shown: Any) -> NDArray[np.uint8] | None:
    """Convert a grey, RGB or RGBA array (bytes, or numbers up to 1 or 255) to RGB bytes; else None."""
    if not isinstance(shown, np.ndarray) or shown.ndim not in (2, 3) or 0 in shown.shape:
        return None
    if shown.ndim == 2:
        shown = shown[:, :, None]
    if shown.shape[2] == 1:
        shown = shown.repeat(3, axis=2)
    if shown.shape[2] not in (3, 4) or shown.dtype.kind not in "buif":
        return None
    picture = shown[:, :, :3]
    if picture.dtype.kind in "bf":
        picture = np.nan_to_num(picture.astype(np.float64))
        picture = picture * (255 if picture.max() <= 1 else 1)
    return np.ascontiguousarray(np.clip(np.round(picture), 0, 255).astype(np.uint8))


@contextmanager
def _no_display() -> Iterator[None]:
    """Use SDL's dummy driver if there is no display, so that SDL prints no error."""
    names = ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY")
    if any(os.environ.get(name) for name in names):
        yield
        return
    os.environ["SDL_VIDEODRIVER"] = "dummy"
    try:
        yield
    finally:
        del os.environ["SDL_VIDEODRIVER"]
