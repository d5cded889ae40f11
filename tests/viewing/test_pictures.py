"""Anything that a renderer returns becomes RGB bytes, or None."""

import numpy as np
import pytest

from quantail.viewing.pictures import as_rgb

RGB = np.arange(24, dtype=np.uint8).reshape(2, 4, 3) * 10


@pytest.mark.parametrize(
    "shown",
    [
        RGB,
        RGB.astype(np.int64),
        RGB.astype(np.float32),
        RGB / 255,
        np.dstack([RGB, np.full((2, 4), 7, np.uint8)]),
    ],
    ids=["bytes", "int64", "float to 255", "float to 1", "with alpha"],
)
def test_every_rgb_format_gives_the_same_bytes(shown):
    found = as_rgb(shown)
    assert found.dtype == np.uint8
    assert np.array_equal(found, RGB)


def test_grey_pictures_become_rgb():
    for grey in (RGB[:, :, 0], RGB[:, :, :1]):
        assert np.array_equal(as_rgb(grey), RGB[:, :, :1].repeat(3, axis=2))


@pytest.mark.parametrize(
    "shown", [None, "text", [1, 2], np.zeros(3), np.zeros((2, 2, 2)), np.zeros((0, 4, 3))]
)
def test_anything_that_is_no_picture_gives_none(shown):
    assert as_rgb(shown) is None
