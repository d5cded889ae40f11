"""The gradients of `quantiles`, by compiled loops that skip the same zeros.

Arrays are as in `quantiles`; those of gradients have the shapes of what they are gradients of.
"""

import numpy as np
from numba import carray

from quantail.networks.kernels.quantiles import GROUP
from quantail.networks.kernels.vectors import (
    aligned,
    compiled,
    floats,
    fma,
    get,
    load,
    multiply,
    put,
    splat,
    spread,
    store,
    total,
    where_positive,
    width,
    zeros8,
    zeros16,
)

CACHED = 65536  # floats of the hidden units' gradient that stay in the second-level cache


@compiled
def gradients8(addresses, sizes):
    """Compute the gradients on vectors of 8 lanes."""
    _gradients(zeros8(), addresses, sizes)


@compiled
def gradients16(addresses, sizes):
    """Compute the gradients on vectors of 16 lanes."""
    _gradients(zeros16(), addresses, sizes)


@compiled
def _gradients(like, addresses, sizes):
    """Add the gradients of ψ, A, a, W, b, V and c, given that of the returns.

    The addresses are those of ψ, W, V, the returns' gradient, then those that `_quantiles` wrote for
    this, then those of the gradients, which are zero at first; the sizes are B, T, d, n, H and A.
    Some states are worked on together, so that a row of W is read once for all of them. The gradient of
    a feature that is zero is left at zero, as it is behind the ReLU that ψ ends in.
    """
    batch, count, features, size, units, actions = sizes
    padded, room = (count + 7) // 8 * 8, features + GROUP
    psi = carray(floats(addresses[0]), batch * features)
    weight, last = (
        carray(floats(addresses[1]), features * units),
        carray(floats(addresses[2]), actions * units),
    )
    of_returns = carray(floats(addresses[3]), batch * count * actions)
    cosines = carray(floats(addresses[4]), batch * count * size)
    phi = carray(floats(addresses[5]), batch * room * padded)
    hidden = carray(floats(addresses[6]), batch * count * units)
    of_psi = carray(floats(addresses[7]), batch * features)
    of_slope, of_offset = (
        carray(floats(addresses[8]), features * size),
        carray(floats(addresses[9]), features),
    )
    of_weight, of_bias = (
        carray(floats(addresses[10]), features * units),
        carray(floats(addresses[11]), units),
    )
    of_last = carray(floats(addresses[12]), actions * units)
    of_constant = carray(floats(addresses[13]), actions)
    together = max(1, min(batch, CACHED // (count * units)))
    of_hidden = aligned(together * count * units)
    # The samples at which a feature is not zero: their numbers, where their ψ is, φ, ψ φ, and the
    # gradient of φ. There is room for one more, which is written before it is known to count.
    samples, places = np.empty(together * count + 1, np.int64), np.empty(together * count + 1, np.int64)
    factors, merged = np.empty(len(samples), np.float32), np.empty(len(samples), np.float32)
    of_phi, cursors = np.empty(len(samples), np.float32), np.empty(together, np.int64)
    for first in range(0, batch, together):
        states = min(together, batch - first)
        for sample in range(states * count):
            at = first * count + sample
            _output_gradient(
                like, hidden, at * units, last, of_returns, at * actions, of_hidden, sample * units,
                of_bias, of_last, of_constant,
            )  # fmt: skip
        cursors[:] = 0
        for feature in range(features):
            number = 0
            for state in range(states):
                place = (first + state) * features + feature
                value = get(psi, place)
                if value <= 0:
                    continue
                at = ((first + state) * room + get(cursors, state)) * padded
                put(cursors, state, get(cursors, state) + 1)
                for t in range(count):
                    factor = get(phi, at + t)
                    put(samples, number, state * count + t)
                    put(places, number, place)
                    put(factors, number, factor)
                    put(merged, number, value * factor)
                    number += not factor <= 0
            if number == 0:
                continue
            of_offset[feature] += _row_gradient(
                like, feature * units, units, weight, of_weight, of_hidden, merged, samples, number,
                psi, factors, places, of_psi, of_phi,
            )  # fmt: skip
            _slope_gradient(
                like, feature * size, size, of_slope, of_phi, cosines, first * count, samples, number
            )


@compiled
def _output_gradient(
    like, hidden, at, last, of_returns, of_at, of_hidden, to, of_bias, of_last, of_constant
):  # fmt: skip
    """Write the gradient of the hidden units of one state and τ, and add those of b, V and c."""
    units = of_bias.shape[0]
    for unit in range(0, units, width(like)):
        store(of_hidden, to + unit, splat(like, np.float32(0)))
    for action in range(of_constant.shape[0]):
        gradient = of_returns[of_at + action]
        if gradient == 0:  # a loss is that of one action
            continue
        of_constant[action] += gradient
        for unit in range(0, units, width(like)):
            row, value = action * units + unit, splat(like, gradient)
            store(
                of_hidden, to + unit, fma(value, load(like, last, row), load(like, of_hidden, to + unit))
            )
            store(of_last, row, fma(value, load(like, hidden, at + unit), load(like, of_last, row)))
    for unit in range(0, units, width(like)):
        value = where_positive(load(like, hidden, at + unit), load(like, of_hidden, to + unit))
        store(of_hidden, to + unit, value)
        store(of_bias, unit, fma(value, splat(like, np.float32(1)), load(like, of_bias, unit)))


@compiled
def _row_gradient(
    like, row, units, weight, of_weight, of_hidden, merged, samples, number,
    psi, factors, places, of_psi, of_phi,
):  # fmt: skip
    """Add the gradients of one row of W and of ψ, write those of φ, and return the sum of the latter."""
    n, ones, of_sum = width(like), splat(like, np.float32(1)), np.float32(0)
    of_phi[:number] = 0
    for unit in range(0, units, 8 * n):
        to = row + unit
        s0, s1 = load(like, of_weight, to), load(like, of_weight, to + n)
        s2, s3 = load(like, of_weight, to + 2 * n), load(like, of_weight, to + 3 * n)
        s4, s5 = load(like, of_weight, to + 4 * n), load(like, of_weight, to + 5 * n)
        s6, s7 = load(like, of_weight, to + 6 * n), load(like, of_weight, to + 7 * n)
        w0, w1 = load(like, weight, to), load(like, weight, to + n)
        w2, w3 = load(like, weight, to + 2 * n), load(like, weight, to + 3 * n)
        w4, w5 = load(like, weight, to + 4 * n), load(like, weight, to + 5 * n)
        w6, w7 = load(like, weight, to + 6 * n), load(like, weight, to + 7 * n)
        for one in range(number):
            value, start = spread(like, merged, one), get(samples, one) * units + unit
            g = load(like, of_hidden, start)
            s0, even = fma(value, g, s0), multiply(w0, g)
            g = load(like, of_hidden, start + n)
            s1, odd = fma(value, g, s1), multiply(w1, g)
            g = load(like, of_hidden, start + 2 * n)
            s2, even = fma(value, g, s2), fma(w2, g, even)
            g = load(like, of_hidden, start + 3 * n)
            s3, odd = fma(value, g, s3), fma(w3, g, odd)
            g = load(like, of_hidden, start + 4 * n)
            s4, even = fma(value, g, s4), fma(w4, g, even)
            g = load(like, of_hidden, start + 5 * n)
            s5, odd = fma(value, g, s5), fma(w5, g, odd)
            g = load(like, of_hidden, start + 6 * n)
            s6, even = fma(value, g, s6), fma(w6, g, even)
            g = load(like, of_hidden, start + 7 * n)
            s7, odd = fma(value, g, s7), fma(w7, g, odd)
            of_merged, place = total(fma(even, ones, odd)), get(places, one)
            put(of_psi, place, get(of_psi, place) + of_merged * get(factors, one))
            gradient = of_merged * get(psi, place)
            put(of_phi, one, get(of_phi, one) + gradient)
            of_sum += gradient
        store(of_weight, to, s0)
        store(of_weight, to + n, s1)
        store(of_weight, to + 2 * n, s2)
        store(of_weight, to + 3 * n, s3)
        store(of_weight, to + 4 * n, s4)
        store(of_weight, to + 5 * n, s5)
        store(of_weight, to + 6 * n, s6)
        store(of_weight, to + 7 * n, s7)
    return of_sum


@compiled
def _slope_gradient(like, row, size, of_slope, of_phi, cosines, first, samples, number):
    """Add the gradient of one row of A, four vectors at a time as far as there are four."""
    n, fours = width(like), size // (4 * width(like)) * 4 * width(like)
    for i in range(0, fours, 4 * n):
        to = row + i
        s0, s1 = load(like, of_slope, to), load(like, of_slope, to + n)
        s2, s3 = load(like, of_slope, to + 2 * n), load(like, of_slope, to + 3 * n)
        for one in range(number):
            value, start = spread(like, of_phi, one), (first + get(samples, one)) * size + i
            s0 = fma(value, load(like, cosines, start), s0)
            s1 = fma(value, load(like, cosines, start + n), s1)
            s2 = fma(value, load(like, cosines, start + 2 * n), s2)
            s3 = fma(value, load(like, cosines, start + 3 * n), s3)
        store(of_slope, to, s0)
        store(of_slope, to + n, s1)
        store(of_slope, to + 2 * n, s2)
        store(of_slope, to + 3 * n, s3)
    for i in range(fours, size, n):
        s0 = load(like, of_slope, row + i)
        for one in range(number):
            start = (first + get(samples, one)) * size + i
            s0 = fma(spread(like, of_phi, one), load(like, cosines, start), s0)
        store(of_slope, row + i, s0)
