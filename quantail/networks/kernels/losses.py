"""Compiled loops for the quantile Huber loss and its slopes."""

import numpy as np
from numba import carray

from quantail.networks.kernels.vectors import compiled, floats, get, put


@compiled
def quantile_huber(addresses, sizes, kappa):
    """Write the loss of every state, and its derivatives by each prediction and each τ.

    The addresses are those of predictions [B, N], τ [B, N], targets [B, M], their probabilities [B, M],
    the losses [B], and the two slopes [B, N]. The sizes are B, N and M.
    """
    batch, count, others = sizes
    predictions = carray(floats(addresses[0]), batch * count)
    taus = carray(floats(addresses[1]), batch * count)
    targets = carray(floats(addresses[2]), batch * others)
    probabilities = carray(floats(addresses[3]), batch * others)
    losses = carray(floats(addresses[4]), batch)
    of_predictions = carray(floats(addresses[5]), batch * count)
    of_taus = carray(floats(addresses[6]), batch * count)
    bound, half, one, zero = np.float32(kappa), np.float32(kappa / 2), np.float32(1), np.float32(0)
    inverse = np.float32(1 / kappa if kappa else 0)
    for state in range(batch):
        total = zero
        for i in range(state * count, state * count + count):
            prediction, tau = get(predictions, i), get(taus, i)
            loss, slope, of_tau = zero, zero, zero
            for j in range(state * others, state * others + others):
                delta = get(targets, j) - prediction
                if kappa:  # ∂L_κ/∂δ, which is NaN where δ is
                    inner = inverse * (bound if delta > bound else (-bound if delta < -bound else delta))
                else:
                    inner = one if delta > zero else (-one if delta < zero else delta)
                size = inner * (delta - half * inner) * get(probabilities, j)  # L_κ(δ)/κ
                below = delta < zero
                weight = one - tau if below else tau
                loss += weight * size
                slope += weight * inner * get(probabilities, j)
                of_tau += -size if below else size
            put(of_predictions, i, -slope)
            put(of_taus, i, of_tau)
            total += loss
        put(losses, state, total)
