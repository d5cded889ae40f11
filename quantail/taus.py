"""How levels τ are drawn: those of a state are uniform on [0, 1] together, whatever the scheme."""

import numpy as np
import torch
from torch import Tensor


def sample_taus(generator: np.random.Generator, batch: int, count: int, scheme: str) -> Tensor:
    """Levels [batch, count].

    `independent` is the paper's. `stratified` draws one from each interval of length 1/count,
    `antithetic` draws pairs τ and 1 − τ, `shared` gives every state of the batch the same ones. For
    given targets the loss has the same expectation under each; its gradient varies less or more.
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
