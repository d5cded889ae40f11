"""Whatever a renderer gives, as a picture."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


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
