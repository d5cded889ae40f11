"""How quantile fractions τ are sampled: those of a state are uniform on [0, 1] together."""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor


class TauSampler(Protocol):
    """The only randomness that a head sees: quantile fractions in (0, 1), [batch, count]."""

    def __call__(self, batch: int, count: int) -> Tensor: ...


class RandomTaus:
    """Sample τ from a generator by one of the schemes of `sample_taus`; used in training."""

    def __init__(self, generator: np.random.Generator, scheme: str = "independent") -> None:
        self.generator, self.scheme = generator, scheme

    def __call__(self, batch: int, count: int) -> Tensor:
        return sample_taus(self.generator, batch, count, self.scheme)


def midpoint_taus(batch: int, count: int) -> Tensor:
    """Return the midpoints (k + ½)/count for every state: the sampler of evaluation and export."""
    return midpoints(count).expand(batch, count)


def midpoints(count: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return (k + ½)/count for k = 0 … count − 1."""
    return ((torch.arange(count, dtype=torch.float64) + 0.5) / count).to(dtype)


def sample_taus(generator: np.random.Generator, batch: int, count: int, scheme: str) -> Tensor:
    """Sample quantile fractions, [batch, count].

    `independent` is the paper's. `stratified` samples one from each interval of length 1/count,
    `antithetic` samples pairs τ and 1 − τ, `shared` gives every state of the batch the same ones. For
    given targets the loss has the same expectation under each; the variance of its gradient differs.
    """
    if scheme == "stratified":
        begins = np.arange(count, dtype=np.float32) / count
        return torch.from_numpy(begins + generator.random((batch, count), dtype=np.float32) / count)
    if scheme == "antithetic":
        half = generator.random((batch, (count + 1) // 2), dtype=np.float32)
        return torch.from_numpy(np.concatenate([half, 1 - half[:, : count // 2]], axis=1))
    if scheme not in ("independent", "shared"):
        raise ValueError(f"unknown scheme {scheme!r}")
    rows = 1 if scheme == "shared" else batch
    drawn = generator.random((rows, count), dtype=np.float32)
    return torch.from_numpy(drawn).expand(batch, count)
