"""The product that dominates the cost of IQN: W (ψ(x) ⊙ φ(τ)) for every state x and fraction τ.

ψ ends in a ReLU. A feature that is zero for every state of the batch is zero for every τ, and the ReLU
blocks its gradient. So its row of φ and its column of W are skipped, forward and backward; the result is
mathematically identical. Rows are processed in chunks, so that the results of one step are still in the
cache when the next step reads them.
"""

from typing import Any

import torch
from torch import Tensor

CHUNK = 1024  # rows at a time: enough for the products' full speed, few enough for the cache
ALIGNED = 16  # keep a multiple of so many features: products of odd width took a quarter longer
MIN_SKIPPED = 48  # skipped features times rows, per feature, above which copying the weights pays


def merged_linear(
    psi: Tensor, basis: Tensor, phi: tuple[Tensor, Tensor], layers: list[tuple[Tensor, Tensor]]
) -> tuple[Tensor, ...]:
    """W (ψ ⊙ φ) + b for each layer (W, b), with φ = ReLU(A basis + a).

    psi [batch, d], none below zero; basis [batch, T, n]; phi (A [d, n], a [d]); W [outputs, d]. Gives
    [batch, T, outputs] for each layer. Where ψ is zero its gradient is zero, because the ReLU
    below would block it.
    """
    flat = [tensor for layer in layers for tensor in layer]
    outputs: tuple[Tensor, ...] = _MergedLinear.apply(  # type: ignore[no-untyped-call]
        torch.is_grad_enabled(), psi, basis, *phi, *flat
    )
    return outputs


class _MergedLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        learning: bool,
        psi: Tensor,
        basis: Tensor,
        slope: Tensor,
        offset: Tensor,
        *layers: Tensor,
    ) -> tuple[Tensor, ...]:
        weights, biases = layers[::2], layers[1::2]
        batch, count, _ = basis.shape
        keep = _worth_keeping(psi, count)
        ctx.keep, ctx.features = keep, psi.shape[1]
        if keep is not None:
            psi = psi.index_select(1, keep)
            slope, offset = slope.index_select(0, keep), offset.index_select(0, keep)
            weights = tuple(weight.index_select(1, keep) for weight in weights)
        chunks = _chunks(batch, count)
        held = batch if learning else max((len(psi[states]) for states in chunks), default=0)
        merged = psi.new_empty(held, count, psi.shape[1])
        outputs = tuple(psi.new_empty(batch, count, len(weight)) for weight in weights)
        for states in chunks:
            part = merged[states] if learning else merged[: states.stop - states.start]
            rows = part.flatten(0, 1)
            torch.addmm(offset, basis[states].flatten(0, 1), slope.t(), out=rows).relu_()
            part *= psi[states].unsqueeze(1)
            for weight, bias, output in zip(weights, biases, outputs, strict=True):
                torch.addmm(bias, rows, weight.t(), out=output[states].flatten(0, 1))
        if learning:
            ctx.save_for_backward(psi, basis, slope, merged, *weights)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        psi, basis, slope, merged, *weights = ctx.saved_tensors
        batch, count, _ = basis.shape
        psi_slopes = torch.empty_like(psi)  # ψ times its gradient
        of_basis = basis.new_empty(basis.shape) if ctx.needs_input_grad[2] else None
        of_slope, of_offset = torch.zeros_like(slope), slope.new_zeros(len(slope))
        flat = merged.flatten(0, 1)
        of_weights = [gradient.flatten(0, 1).t() @ flat for gradient in gradients]
        for states in _chunks(batch, count):
            part, scale = merged[states], psi[states].unsqueeze(1)
            rows = [gradient[states].flatten(0, 1) for gradient in gradients]
            of_rows = rows[0] @ weights[0]
            for row, weight in zip(rows[1:], weights[1:], strict=True):
                of_rows.addmm_(row, weight)
            of_part = of_rows.view_as(part)
            torch.sum(of_part * part, dim=1, out=psi_slopes[states])
            of_part *= scale
            torch.ops.aten.threshold_backward.grad_input(of_part, part, 0, grad_input=of_part)
            of_slope.addmm_(of_rows.t(), basis[states].flatten(0, 1))
            of_offset += of_rows.sum(dim=0)
            if of_basis is not None:
                torch.mm(of_rows, slope, out=of_basis[states].flatten(0, 1))
        of_psi = torch.where(psi == 0, 0, psi_slopes / psi)
        if ctx.keep is not None:
            of_psi = _spread(of_psi, 1, ctx)
            of_slope, of_offset = _spread(of_slope, 0, ctx), _spread(of_offset, 0, ctx)
            of_weights = [_spread(gradient, 1, ctx) for gradient in of_weights]
        of_biases = [gradient.sum(dim=(0, 1)) for gradient in gradients]
        of_layers = [g for pair in zip(of_weights, of_biases, strict=True) for g in pair]
        return None, of_psi, of_basis, of_slope, of_offset, *of_layers


def use_sparse_product(psi: Tensor, count: int) -> bool:
    """Return whether `merged_linear` is faster for `count` fractions τ per state."""
    on_cpu = psi.device.type == "cpu" and psi.dtype != torch.bfloat16
    return on_cpu and len(psi) * count > MIN_SKIPPED


def _chunks(batch: int, count: int) -> list[slice]:
    """Return slices of the states of a batch, one for each chunk of rows."""
    size = max(1, CHUNK // count)
    return [slice(begin, min(begin + size, batch)) for begin in range(0, batch, size)]


def _worth_keeping(psi: Tensor, count: int) -> Tensor | None:
    """Return the features that are not zero for the whole batch; None if skipping does not pay."""
    features = psi.shape[1]
    active = psi.any(dim=0)
    keep = active.nonzero().squeeze(1)
    filler = -len(keep) % ALIGNED
    if len(psi) * count * (features - len(keep) - filler) <= MIN_SKIPPED * features:
        return None
    return torch.cat([keep, (~active).nonzero().squeeze(1)[:filler]])


def _spread(gradient: Tensor, dim: int, ctx: Any) -> Tensor:
    """Return the gradient of all features, which is zero for the skipped ones."""
    shape = list(gradient.shape)
    shape[dim] = ctx.features
    return gradient.new_zeros(shape).index_copy_(dim, ctx.keep, gradient)
