"""Compiled loops for Z_τ(x, ·) = V ReLU(W (ψ(x) ⊙ φ(τ)) + b) + c with φ(τ) = ReLU(A cos(π i τ) + a).

ψ ends in a ReLU, and so does φ: where one of the two is zero, nothing has to be computed, forward or
backward. The loops skip these zeros for each state and each τ. The result is exact up to the order of
the sums.

Arrays are flat and row-major: A [d, n], W [d, H] (the transpose of the layer's weight), V [A, H]. The
nonzero features of a state are its rows; `phi` holds φ at the rows, [rows, T], where T is filled up to a
multiple of 8.
"""

import math

import numpy as np
from numba import carray

from quantail.networks.kernels.vectors import (
    aligned,
    compiled,
    floats,
    fma,
    get,
    load,
    put,
    rectified,
    splat,
    spread,
    store,
    total,
    width,
    zeros8,
    zeros16,
)

GROUP = 8  # rows of A that are worked on together
CACHED = 8192  # floats of W that stay in the first-level cache


@compiled
def quantiles8(addresses, sizes):
    """Compute the quantiles on vectors of 8 lanes."""
    _quantiles(zeros8(), addresses, sizes)


@compiled
def quantiles16(addresses, sizes):
    """Compute the quantiles on vectors of 16 lanes."""
    _quantiles(zeros16(), addresses, sizes)


@compiled
def _quantiles(like, addresses, sizes):
    """Write Z_τ to `returns` [B, T, A].

    The addresses are those of ψ [B, d], τ [B, T], A, a, W, b, V, c, returns, and of what the gradients
    need: cosines [B, T, n], phi [B, d + GROUP, T], hidden [B, T, H]. Without gradients these have room
    for one state, which all states use in turn. The sizes are B, T, d, n, H, A and for how many states
    there is room.
    """
    batch, count, features, size, units, actions, room = sizes
    padded = (count + 7) // 8 * 8
    psi = carray(floats(addresses[0]), batch * features)
    taus = carray(floats(addresses[1]), batch * count)
    slope, offset = carray(floats(addresses[2]), features * size), carray(floats(addresses[3]), features)
    weight, bias = carray(floats(addresses[4]), features * units), carray(floats(addresses[5]), units)
    last, constant = carray(floats(addresses[6]), actions * units), carray(floats(addresses[7]), actions)
    returns = carray(floats(addresses[8]), batch * count * actions)
    cosines = carray(floats(addresses[9]), room * count * size)
    phi = carray(floats(addresses[10]), room * (features + GROUP) * padded)
    hidden = carray(floats(addresses[11]), room * count * units)
    keeps = room == batch
    transposed = aligned(size * padded)  # the cosines of a state, [n, T]
    chain = np.zeros((3, padded), np.float64)
    rows = np.empty(features + GROUP, np.int64)
    block = max(1, CACHED // units)  # rows of W
    values, starts = np.empty(block + 1, np.float32), np.empty(block + 1, np.int64)
    for state in range(batch):
        place = state if keeps else 0
        at, hidden_at = place * len(rows) * padded, place * count * units
        number = _nonzero(psi, state * features, features, rows)
        _cosines(taus, state * count, count, chain, transposed)
        for t in range(count if keeps else 0):
            for i in range(size):
                put(cosines, (state * count + t) * size + i, get(transposed, i * padded + t))
        for t in range(count):
            for unit in range(units):
                put(hidden, hidden_at + t * units + unit, get(bias, unit))
        if padded % width(like) == 0:
            _embed(like, slope, offset, rows, number, transposed, size, phi, at)
        else:
            _embed(zeros8(), slope, offset, rows, number, transposed, size, phi, at)
        for begin in range(0, number, block):
            end = min(begin + block, number)
            for t in range(count):
                found = 0
                for row in range(begin, end):
                    feature, value = get(rows, row), get(phi, at + row * padded + t)
                    put(values, found, value * get(psi, state * features + feature))
                    put(starts, found, feature * units)
                    found += not value <= 0  # NaN counts, so that it is not hidden
                _add_rows(like, hidden, hidden_at + t * units, weight, values, starts, found, units)
        for t in range(count):
            _output(
                like,
                hidden,
                hidden_at + t * units,
                last,
                constant,
                returns,
                (state * count + t) * actions,
            )


@compiled
def _nonzero(psi, at, features, rows):
    """Write the indices of a state's nonzero features to `rows`, and more to fill the last group."""
    found = 0
    for feature in range(features):
        put(rows, found, feature)
        found += not get(psi, at + feature) <= 0
    for more in range(GROUP):
        rows[found + more] = rows[max(found - 1, 0)]
    return found


@compiled
def _cosines(taus, at, count, chain, transposed):
    """Write cos(π i τ) for i = 1 … n, [n, T], by cos((i + 1) x) = 2 cos(x) cos(i x) − cos((i − 1) x).

    In float64 the error of the recurrence is far below the rounding of the result.
    """
    twice, before, now = chain[0], chain[1], chain[2]
    for t in range(count):
        now[t] = math.cos(math.pi * taus[at + t])
        twice[t], before[t] = 2 * now[t], 1.0
    padded = len(now)
    for i in range(len(transposed) // padded):
        for t in range(padded):
            put(transposed, i * padded + t, np.float32(get(now, t)))
            following = get(twice, t) * get(now, t) - get(before, t)
            put(before, t, get(now, t))
            put(now, t, following)


@compiled
def _embed(like, slope, offset, rows, number, basis, size, phi, at):
    """Write ReLU(A basis + a) of one state at its rows, a group of rows at a time."""
    padded = basis.shape[0] // size
    for row in range(0, number, GROUP):
        r0, r1, r2, r3 = rows[row], rows[row + 1], rows[row + 2], rows[row + 3]
        r4, r5, r6, r7 = rows[row + 4], rows[row + 5], rows[row + 6], rows[row + 7]
        for t in range(0, padded, width(like)):
            s0, s1 = spread(like, offset, r0), spread(like, offset, r1)
            s2, s3 = spread(like, offset, r2), spread(like, offset, r3)
            s4, s5 = spread(like, offset, r4), spread(like, offset, r5)
            s6, s7 = spread(like, offset, r6), spread(like, offset, r7)
            for i in range(size):
                value = load(like, basis, i * padded + t)
                s0 = fma(spread(like, slope, r0 * size + i), value, s0)
                s1 = fma(spread(like, slope, r1 * size + i), value, s1)
                s2 = fma(spread(like, slope, r2 * size + i), value, s2)
                s3 = fma(spread(like, slope, r3 * size + i), value, s3)
                s4 = fma(spread(like, slope, r4 * size + i), value, s4)
                s5 = fma(spread(like, slope, r5 * size + i), value, s5)
                s6 = fma(spread(like, slope, r6 * size + i), value, s6)
                s7 = fma(spread(like, slope, r7 * size + i), value, s7)
            to = at + row * padded + t
            store(phi, to, rectified(s0))
            store(phi, to + padded, rectified(s1))
            store(phi, to + 2 * padded, rectified(s2))
            store(phi, to + 3 * padded, rectified(s3))
            store(phi, to + 4 * padded, rectified(s4))
            store(phi, to + 5 * padded, rectified(s5))
            store(phi, to + 6 * padded, rectified(s6))
            store(phi, to + 7 * padded, rectified(s7))


@compiled
def _add_rows(like, hidden, at, weight, values, starts, number, units):
    """Add `values` times rows of W to the hidden units of one state and τ, eight vectors at a time."""
    n = width(like)
    for unit in range(0, units, 8 * n):
        to = at + unit
        s0, s1 = load(like, hidden, to), load(like, hidden, to + n)
        s2, s3 = load(like, hidden, to + 2 * n), load(like, hidden, to + 3 * n)
        s4, s5 = load(like, hidden, to + 4 * n), load(like, hidden, to + 5 * n)
        s6, s7 = load(like, hidden, to + 6 * n), load(like, hidden, to + 7 * n)
        for one in range(number):
            value, row = spread(like, values, one), get(starts, one) + unit
            s0 = fma(value, load(like, weight, row), s0)
            s1 = fma(value, load(like, weight, row + n), s1)
            s2 = fma(value, load(like, weight, row + 2 * n), s2)
            s3 = fma(value, load(like, weight, row + 3 * n), s3)
            s4 = fma(value, load(like, weight, row + 4 * n), s4)
            s5 = fma(value, load(like, weight, row + 5 * n), s5)
            s6 = fma(value, load(like, weight, row + 6 * n), s6)
            s7 = fma(value, load(like, weight, row + 7 * n), s7)
        store(hidden, to, s0)
        store(hidden, to + n, s1)
        store(hidden, to + 2 * n, s2)
        store(hidden, to + 3 * n, s3)
        store(hidden, to + 4 * n, s4)
        store(hidden, to + 5 * n, s5)
        store(hidden, to + 6 * n, s6)
        store(hidden, to + 7 * n, s7)


@compiled
def _output(like, hidden, at, last, constant, returns, to):
    """Apply the ReLU to the hidden units of one state and τ, and write the returns of all actions."""
    units = last.shape[0] // constant.shape[0]
    for unit in range(0, units, width(like)):
        store(hidden, at + unit, rectified(load(like, hidden, at + unit)))
    for action in range(constant.shape[0]):
        found = splat(like, np.float32(0))
        for unit in range(0, units, width(like)):
            found = fma(load(like, hidden, at + unit), load(like, last, action * units + unit), found)
        returns[to + action] = total(found) + constant[action]
