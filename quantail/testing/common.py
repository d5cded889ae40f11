"""What all checks share: their error, how a part is asked, τ samplers and comparisons."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from quantail.errors import QuantailError

Answer = TypeVar("Answer")


class PartError(QuantailError, AssertionError):
    """A part does not keep its contract. The message names the part, what it did and what it must do."""


def require(kept: bool | Tensor, part: str, did: str, must: str) -> None:
    """Raise the sentence unless the part kept its contract."""
    if not bool(kept):
        raise PartError(f"{part} {did}, but {must}.")


@contextmanager
def asking(part: str, question: str) -> Iterator[None]:
    """Turn an exception that a part raises into a sentence that says what it was asked."""
    try:
        yield
    except PartError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise PartError(
            f"{part} raised {type(error).__name__} ({reason}) when asked for {question}, "
            "but it must answer."
        ) from error


@contextmanager
def kept_generators() -> Iterator[None]:
    """Restore the global random generators afterwards, whatever the part does to them."""
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])


ONLY_TAUS = "the sampler `taus` must be its only source of randomness"
NO_RANDOMNESS = "the same question must always get the same answer"


def answer(
    part: str, question: str, ask: Callable[[], Answer], *given: Tensor, rule: str = ONLY_TAUS
) -> Answer:
    """Return the answer, after asking twice to see that it draws no random numbers of its own.

    `given` are the tensors that the question hands to the part, which must stay as they are. `rule`
    says what randomness the part may use.
    """
    answers = []
    copies = [tensor.clone() for tensor in given]
    for seed in (1, 2):
        _seed_globals(seed)
        before = _global_states()
        with asking(part, question):
            answers.append(ask())
        after = _global_states()
        used = [name for name in before if before[name] != after[name]]
        require(
            not used,
            part,
            f"draws its own random numbers (from the global generator of {' and '.join(used)}) when "
            f"asked for {question}",
            rule,
        )
        require(
            all(map(_equal, given, copies)),
            part,
            f"changed in place what it was given when asked for {question}",
            "others still need these tensors",
        )
    first, second = (tensors_of(one) for one in answers)
    require(
        len(first) == len(second) and all(map(_equal, first, second)),
        part,
        f"draws its own random numbers or keeps hidden state: asked twice for {question}, it gave two "
        "answers",
        rule,
    )
    return answers[0]


class RowTaus:
    """A τ sampler whose fractions belong to a row, wherever that row stands in a batch.

    `several` also allows to ask for the rows several times over, as a target does that asks about
    observations and next observations at once.
    """

    def __init__(
        self,
        part: str,
        rows: Sequence[int],
        dtype: torch.dtype = torch.float32,
        several: bool = False,
    ) -> None:
        self.part, self.rows, self.dtype, self.several = part, list(rows), dtype, several
        self.calls = 0

    def __call__(self, batch: int, count: int) -> Tensor:
        fits = type(batch) is int and type(count) is int and batch > 0 and count > 0
        times = batch // len(self.rows) if fits else 0
        require(
            fits and batch == times * len(self.rows) and (times == 1 or self.several),
            self.part,
            f"called taus({batch!r}, {count!r}) for {len(self.rows)} states",
            "`taus` takes the number of states and a count of at least 1, both of type int",
        )
        self.calls += 1
        drawn = [np.random.default_rng((row, self.calls)).random(count) for row in self.rows * times]
        return torch.from_numpy(np.stack(drawn)).to(self.dtype)


def tensors_of(answer: Any) -> list[Tensor]:
    """Return all tensors in an answer, in order."""
    if isinstance(answer, Tensor):
        return [answer]
    if isinstance(answer, Mapping):
        return [tensor for name in sorted(answer) for tensor in tensors_of(answer[name])]
    if is_dataclass(answer):
        return [t for one in fields(answer) for t in tensors_of(getattr(answer, one.name))]
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        return [tensor for one in answer for tensor in tensors_of(one)]
    return []


@torch.no_grad()
def close(one: Any, two: Any, tolerance: float) -> bool:
    """Return whether two answers agree, up to this share of their largest number (at least 1)."""
    pairs = list(zip(tensors_of(one), tensors_of(two), strict=True))
    return all(
        a.shape == b.shape
        and (a.numel() == 0 or bool((a - b).abs().max() <= tolerance * max(1.0, float(b.abs().max()))))
        for a, b in pairs
    )


def _global_states() -> dict[str, Any]:
    """Return the states of the global generators, in a form that can be compared."""
    name, keys, *rest = np.random.get_state(legacy=True)
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "numpy": (name, np.asarray(keys).tobytes(), *rest),
        "random": random.getstate(),
    }


def _equal(one: Tensor, two: Tensor) -> bool:
    """Return whether two tensors are the same to the last bit, NaN included."""
    return one.shape == two.shape and bool(((one == two) | (one.isnan() & two.isnan())).all())


def _seed_globals(seed: int) -> None:
    torch.default_generator.manual_seed(seed)  # of the CPU alone
    np.random.seed(seed)
    random.seed(seed)
