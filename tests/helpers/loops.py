"""The losses as plain loops, which the vectorised ones are compared with."""

import torch


def triple_loop(predictions, taus, targets, kappa):
    """Compute Algorithm 1 of IQN one number at a time."""
    losses = []
    for b in range(len(predictions)):
        total = 0.0
        for i in range(predictions.shape[1]):
            mean = 0.0
            for j in range(targets.shape[1]):
                delta = float(targets[b, j]) - float(predictions[b, i].detach())
                if kappa == 0:
                    size = abs(delta)
                elif abs(delta) <= kappa:
                    size = 0.5 * delta**2 / kappa
                else:
                    size = (abs(delta) - 0.5 * kappa) * kappa / kappa
                mean += abs(float(taus[b, i]) - (1.0 if delta < 0 else 0.0)) * size
            total += mean / targets.shape[1]
        losses.append(total)
    return torch.tensor(losses, dtype=torch.float64)


def double_loop(atoms, weights, support):
    """Compute Algorithm 1 of C51 one atom at a time: its neighbours share the mass by distance."""
    gap = float(support[1] - support[0])
    probabilities = torch.zeros(len(atoms), len(support), dtype=torch.float64)
    for row in range(len(atoms)):
        for j in range(atoms.shape[1]):
            z = min(max(float(atoms[row, j]), float(support[0])), float(support[-1]))
            b = (z - float(support[0])) / gap
            lower, upper = int(b // 1), min(int(b // 1) + 1, len(support) - 1)
            probabilities[row, lower] += float(weights[row, j]) * (1 - (b - lower))
            if upper != lower:
                probabilities[row, upper] += float(weights[row, j]) * (b - lower)
    return probabilities
