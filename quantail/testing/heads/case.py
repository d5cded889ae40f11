"""A head class with its configuration, and how the checks build it, feed it and ask it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from quantail.distributions import ReturnDistribution
from quantail.networks.heads import HeadSpec, ReturnHead
from quantail.networks.layers import NoisyLinear, linear_layers
from quantail.networks.network import seeded
from quantail.testing.common import Answer, RowTaus, answer
from quantail.testing.modules import randomise


@dataclass(frozen=True)
class Layers:
    """The layers that a spec may ask for."""

    noisy: bool = False
    dueling: bool = False

    def __str__(self) -> str:
        return ("noisy" if self.noisy else "plain") + " dueling" * self.dueling


@dataclass(frozen=True)
class HeadCase:
    """A head under check."""

    kind: type[ReturnHead]
    config: Any

    @property
    def part(self) -> str:
        """The head's name in messages."""
        return f"head {self.kind.__name__}"

    def start(
        self,
        num_features: int = 6,
        num_actions: int = 3,
        layers: Layers = Layers(),  # noqa: B008 - it is frozen
        *,
        hidden: int = 16,
        nonnegative: bool = False,
        seed: int = 0,
    ) -> ReturnHead:
        """Build the head as a network does."""
        linear = linear_layers(0.5 if layers.noisy else 0.0)
        spec = HeadSpec(num_features, num_actions, hidden, linear, layers.dueling, nonnegative)
        head = seeded(lambda: self.kind(spec, self.config), seed)
        head.start()
        draw_noise(head)
        return head

    def build(self, *args: Any, **changes: Any) -> ReturnHead:
        """Build the head with weights that are not at their start, where some may be zero."""
        head = self.start(*args, **changes)
        randomise(head, changes.get("seed", 0))
        return head

    def answer(self, question: str, ask: Callable[[], Answer], *given: Tensor) -> Answer:
        """Return the head's answer; see `quantail.testing.common.answer`."""
        return answer(self.part, question, ask, *given)

    def taus(self, rows: int | Sequence[int], dtype: torch.dtype = torch.float32) -> RowTaus:
        """Return a τ sampler for these rows."""
        return RowTaus(self.part, range(rows) if isinstance(rows, int) else rows, dtype)


def draw_noise(head: ReturnHead) -> None:
    """Draw the same noise for every head that is built, as the learner does for each update."""
    generator = np.random.default_rng(3)
    for layer in head.modules():
        if isinstance(layer, NoisyLinear):
            layer.draw(generator)


def features(batch: int, size: int = 6, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return features as from a ReLU: nonnegative, about a third of them zero, [B, d]."""
    drawn = torch.randn(batch, size, generator=torch.Generator().manual_seed(batch), dtype=torch.float64)
    return torch.relu(drawn + 0.4).to(dtype)


def returns(head: ReturnHead, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return random returns that the head can represent."""
    low, high = head.support() or (-2.0, 2.0)
    drawn = torch.rand(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return (low + (high - low) * drawn).to(dtype)


def targets(
    head: ReturnHead, batch: int, dtype: torch.dtype = torch.float32
) -> dict[str, ReturnDistribution]:
    """Return the kinds of target that a head may be given, [B, M′]."""
    atoms = returns(head, batch, 7, dtype=dtype)
    weights = torch.rand(batch, 7, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    probs = (weights / weights.sum(dim=1, keepdim=True)).to(dtype)
    return {
        "a target without probs": ReturnDistribution(atoms),
        "a target with probs": ReturnDistribution(atoms, probs),
        "a comonotone target": ReturnDistribution(atoms, comonotone=True),
        "a point mass as target": ReturnDistribution(atoms[:, :1]),
    }
