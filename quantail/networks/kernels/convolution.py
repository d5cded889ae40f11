"""Compiled loops for MinAtar's convolution: 3×3 kernels, stride 1, 16 filters, and a ReLU.

Its images [B, h, w, C] are nearly empty, so the loops go over the pixels that are not zero. One vector
holds a value of all filters. Kernels are flat with the filters last, [C, 3, 3, 16].
"""

import numpy as np
from numba import carray

from quantail.networks.kernels.vectors import (
    compiled,
    floats,
    fma,
    get,
    load,
    put,
    rectified,
    splat,
    store,
    where_positive,
    zeros16,
)

SIDE, FILTERS = 3, 16


@compiled
def convolve(addresses, sizes):
    """Write ReLU(conv(images) + bias) to the features [B, 16 (h − 2) (w − 2)].

    The addresses are those of images, kernels, bias and features; the sizes are those of the images.
    """
    batch, height, width, channels = sizes
    high, wide, like = height - SIDE + 1, width - SIDE + 1, zeros16()
    places = high * wide
    images = carray(floats(addresses[0]), sizes)
    kernels = carray(floats(addresses[1]), channels * SIDE * SIDE * FILTERS)
    bias = carray(floats(addresses[2]), FILTERS)
    features = carray(floats(addresses[3]), batch * FILTERS * places)
    sums = np.empty(places * FILTERS, np.float32)
    for image in range(batch):
        for place in range(places):
            store(sums, place * FILTERS, load(like, bias, 0))
        for y in range(height):
            for x in range(width):
                for channel in range(channels):
                    pixel = images[image, y, x, channel]
                    if pixel == 0:
                        continue
                    value = splat(like, pixel)
                    for up in range(max(0, y - high + 1), min(SIDE, y + 1)):
                        for left in range(max(0, x - wide + 1), min(SIDE, x + 1)):
                            to = ((y - up) * wide + x - left) * FILTERS
                            kernel = load(like, kernels, ((channel * SIDE + up) * SIDE + left) * FILTERS)
                            store(sums, to, fma(value, kernel, load(like, sums, to)))
        at = image * FILTERS * places
        for place in range(places):
            store(sums, place * FILTERS, rectified(load(like, sums, place * FILTERS)))
            for one in range(FILTERS):
                put(features, at + one * places + place, get(sums, place * FILTERS + one))


@compiled
def convolution_gradients(addresses, sizes):
    """Add the gradients of the kernels and the bias, given that of the features.

    The addresses are those of images, features, the features' gradient, and the two gradients, which are
    zero at first; the sizes are those of the images.
    """
    batch, height, width, channels = sizes
    high, wide, like = height - SIDE + 1, width - SIDE + 1, zeros16()
    places = high * wide
    images = carray(floats(addresses[0]), sizes)
    features = carray(floats(addresses[1]), batch * FILTERS * places)
    of_features = carray(floats(addresses[2]), batch * FILTERS * places)
    of_kernels = carray(floats(addresses[3]), channels * SIDE * SIDE * FILTERS)
    of_bias = carray(floats(addresses[4]), FILTERS)
    found, of_sums = np.empty(FILTERS, np.float32), np.empty(places * FILTERS, np.float32)
    bias = splat(like, np.float32(0))
    for image in range(batch):
        at = image * FILTERS * places
        for place in range(places):
            for one in range(FILTERS):
                put(found, one, get(features, at + one * places + place))
                put(of_sums, place * FILTERS + one, get(of_features, at + one * places + place))
            value = where_positive(load(like, found, 0), load(like, of_sums, place * FILTERS))
            store(of_sums, place * FILTERS, value)
            bias = fma(value, splat(like, np.float32(1)), bias)
        for y in range(height):
            for x in range(width):
                for channel in range(channels):
                    pixel = images[image, y, x, channel]
                    if pixel == 0:
                        continue
                    value = splat(like, pixel)
                    for up in range(max(0, y - high + 1), min(SIDE, y + 1)):
                        for left in range(max(0, x - wide + 1), min(SIDE, x + 1)):
                            to = ((channel * SIDE + up) * SIDE + left) * FILTERS
                            of_sum = load(like, of_sums, ((y - up) * wide + x - left) * FILTERS)
                            store(of_kernels, to, fma(value, of_sum, load(like, of_kernels, to)))
    store(of_bias, 0, bias)
