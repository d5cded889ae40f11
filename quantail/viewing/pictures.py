"""Environments with a renderer, and whatever it gives as a picture."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.acting.agent import Agent
from quantail.envs import EnvSource, make
from quantail.envs.adapt import Adapter
from quantail.errors import QuantailError


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
        with _no_display(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return as_rgb(env.render())
    except Exception:  # a renderer that fails costs the picture alone
        return None


def as_rgb(shown: Any) -> NDArray[np.uint8] | None:
    """RGB bytes of an array that is grey, RGB or RGBA, bytes or numbers up to 1 or 255; else None."""
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
