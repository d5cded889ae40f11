"""The form of what parts have and give: configurations, tensors, distributions, gradients."""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from quantail.distributions import ReturnDistribution
from quantail.testing.common import PartError, asking, require

STEPS = (1e-6, 1e-8)  # of finite differences, in float64


def check_config(part: str, kind: type, config: Any) -> Any:
    """Return the configuration to build with, after checking the class's `Config`."""
    declared = getattr(kind, "Config", None)
    frozen = is_dataclass(declared) and getattr(declared, "__dataclass_params__").frozen  # noqa: B009
    require(
        isinstance(declared, type) and frozen,
        part,
        f"has the Config {declared!r}",
        "`Config` must be a frozen dataclass, which may be empty",
    )
    assert isinstance(declared, type)
    for one in fields(declared):
        require(
            one.default is not MISSING or one.default_factory is not MISSING,
            part,
            f"has no default for {one.name} in its Config",
            "every setting must have one",
        )
    if config is None:
        with asking(part, "its default Config"):
            return declared()
    require(
        isinstance(config, declared),
        part,
        f"was given the configuration {config!r}",
        f"it takes a {declared.__name__}",
    )
    return config


def check_distribution(
    part: str, question: str, z: Any, batch_axes: tuple[int, ...], dtype: torch.dtype = torch.float32
) -> None:
    """Check that an answer is a distribution with these batch axes, finite and normalised."""
    require(
        isinstance(z, ReturnDistribution),
        part,
        f"gave a {type(z).__name__} when asked for {question}",
        "it must give a ReturnDistribution",
    )
    shape = tuple(z.atoms.shape)
    wanted = ", ".join(map(str, batch_axes))
    require(
        shape[:-1] == batch_axes and shape[-1:] > (0,),
        part,
        f"gave atoms of shape {shape} when asked for {question}",
        f"they must have the shape ({wanted}, atoms)",
    )
    require(
        z.atoms.dtype == dtype,
        part,
        f"gave atoms of {z.atoms.dtype} when asked for {question}",
        f"it must keep the dtype of its weights, {dtype}",
    )
    _check_finite(part, f"atoms when asked for {question}", z.atoms)
    if z.probs is None:
        return
    try:
        probs = z.probabilities()
    except RuntimeError as error:
        raise PartError(
            f"{part} gave probabilities of shape {tuple(z.probs.shape)} for atoms of shape {shape}, "
            "but they must broadcast to the atoms."
        ) from error
    _check_finite(part, f"probabilities when asked for {question}", probs)
    probs = probs.detach()
    totals = probs.sum(dim=-1).flatten()
    total = totals[(totals - 1).abs().argmax()]
    require(
        (probs >= 0).all() and (total - 1).abs() <= 1e-4,
        part,
        f"gave probabilities of at least {float(probs.min()):.3g} and a sum of {float(total):.3g} when "
        f"asked for {question}",
        "over the atoms of each action they must be at least 0 and sum to 1",
    )


def check_tensor(
    part: str,
    question: str,
    tensor: Any,
    shape: tuple[int, ...],
    dtype: torch.dtype = torch.float32,
) -> None:
    """Check the shape, the dtype and the numbers of a tensor."""
    found = tuple(tensor.shape) if isinstance(tensor, Tensor) else type(tensor).__name__
    require(
        found == shape,
        part,
        f"gave {found} when asked for {question}",
        f"the answer must have the shape {shape}",
    )
    require(
        tensor.dtype == dtype,
        part,
        f"gave {tensor.dtype} when asked for {question}",
        f"it must keep the dtype of its weights, {dtype}",
    )
    _check_finite(part, f"numbers when asked for {question}", tensor)


def _check_finite(part: str, what: str, tensor: Tensor) -> None:
    require(tensor.isfinite().all(), part, f"gave {what} that are not finite", "all must be finite")


@torch.no_grad()
def wrong_slope(
    function: Callable[[], Tensor], tensor: Tensor, gradient: Tensor, seed: int = 0
) -> tuple[float, float] | None:
    """Compare a gradient with finite differences along three random directions, in float64.

    Return both slopes of a direction if most directions disagree at each step; one may cross a kink.
    """
    generator = torch.Generator().manual_seed(seed)
    at, wrong = tensor.clone(), []
    for _ in range(3):
        direction = torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)
        claimed = float((gradient * direction).sum())
        measured = []
        for step in STEPS:
            tensor.copy_(at + step * direction)
            up = float(function())
            tensor.copy_(at - step * direction)
            measured.append((up - float(function())) / (2 * step))
        allowed = 1e-3 * max(abs(claimed), *map(abs, measured)) + 1e-6 * (1 + abs(up))
        if not any(abs(one - claimed) <= allowed for one in measured):
            wrong.append((claimed, measured[0]))
    tensor.copy_(at)
    return wrong[0] if len(wrong) > 1 else None


def slope_text(slopes: tuple[float, float] | None, index: int) -> str:
    """Return one of the slopes as text."""
    return "" if slopes is None else f"{slopes[index]:.4g}"
