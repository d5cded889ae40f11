"""The compiled kernels as differentiable functions of tensors."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from quantail.networks.kernels import announce
from quantail.networks.kernels.convolution import FILTERS, SIDE, convolution_gradients, convolve
from quantail.networks.kernels.gradients import gradients8, gradients16
from quantail.networks.kernels.losses import quantile_huber
from quantail.networks.kernels.quantiles import GROUP, quantiles8, quantiles16
from quantail.networks.kernels.vectors import WIDEST

WORTH_THREADS = 100_000_000  # products ψ φ W of a batch from which threads share it


def head_quantiles(
    psi: Tensor, taus: Tensor, phi: tuple[Tensor, Tensor], hidden: tuple[Tensor, Tensor],
    last: tuple[Tensor, Tensor],
) -> Tensor:  # fmt: skip
    """Return Z_τ: features ψ [B, d] and taus [B, T] -> [B, T, A].

    The layers are weights and biases: `phi` from n cosines to d, `hidden` from d to H, `last` from H to
    A. The weight of `hidden` should be stored transposed, or it is copied at every call. The result is
    differentiable in ψ, which must end in a ReLU, and in the layers.
    """
    slope, weight = phi[0], hidden[0]
    _require(psi, (taus.shape[0], slope.shape[0]))
    _require(taus, (psi.shape[0], taus.shape[1]))
    _require(slope, (weight.shape[1], slope.shape[1]))
    _require(weight, (last[0].shape[1], psi.shape[1]))
    arguments = (_stored(psi), _stored(taus), *map(_stored, phi), *hidden, *map(_stored, last))
    if torch.is_grad_enabled() and any(one.requires_grad for one in arguments):
        returns: Tensor = _Quantiles.apply(*arguments)
        return returns
    return _forward(arguments, keeps=False)[0]


class _Quantiles(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        returns, kept = _forward(arguments, keeps=True)
        ctx.save_for_backward(*arguments, *kept)
        return returns

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_returns: Tensor) -> tuple[Tensor | None, ...]:
        psi, taus, slope, offset, weight, bias, last, constant, *kept = ctx.saved_tensors
        sizes = _sizes(taus, slope, last)
        shares = _shares(sizes)
        of_psi, stored, of_returns = torch.zeros_like(psi), _stored(weight.t()), _stored(of_returns)
        layers = (slope, offset, stored, bias, last, constant)
        of_layers = [_zeros(len(shares), *one.shape) for one in layers]  # of each share
        kernel = gradients16 if _lanes(bias) == 16 else gradients8

        def work(share: int, states: slice) -> None:
            own = (psi, of_returns, *kept, of_psi)
            if len(shares) > 1:
                own = tuple(one[states] for one in own)
            of = [one[share] for one in of_layers]
            given = (own[0], stored, last, *own[1:])
            _call(kernel, _addresses(*given, *of), (states.stop - states.start, *sizes[1:]))

        _run(work, shares)
        of = [one.sum(dim=0) if len(shares) > 1 else one[0] for one in of_layers]
        return of_psi, None, of[0], of[1], of[2].t(), of[3], of[4], of[5]


def _forward(arguments: tuple[Tensor, ...], keeps: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the quantiles, and what their gradients need: cosines, φ and hidden units."""
    psi, taus, slope, offset, weight, bias, last, constant = arguments
    sizes = batch, count, features, size, units, actions = _sizes(taus, slope, last)
    returns = _empty(batch, count, actions)
    shares = _shares(sizes)
    room = batch if keeps else len(shares)
    kept = (
        _empty(room, count * size),
        _empty(room, (features + GROUP) * ((count + 7) // 8 * 8)),
        _empty(room, count * units),
    )
    layers = (slope, offset, _stored(weight.t()), bias, last, constant)
    kernel = quantiles16 if _lanes(bias) == 16 else quantiles8

    def work(share: int, states: slice) -> None:
        number = states.stop - states.start
        own: tuple[Tensor, ...] = (psi, taus, returns, *kept)
        if len(shares) > 1:
            places = states if keeps else slice(share, share + 1)
            own = (*(one[states] for one in own[:3]), *(one[places] for one in kept))
        counts = (number, *sizes[1:], number if keeps else 1)
        _call(kernel, _addresses(*own[:2], *layers, *own[2:]), counts)

    _run(work, shares)
    return returns, kept


def _shares(sizes: tuple[int, ...]) -> list[slice]:
    """Return the states of a batch as shares for torch's threads: one where the work is small."""
    batch, count, features, _, units, _ = sizes
    if batch * count * features * units < WORTH_THREADS:
        return [slice(0, batch)]
    threads = min(torch.get_num_threads(), batch)
    ends = [batch * (share + 1) // threads for share in range(threads)]
    return [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]


def _run(work: Callable[[int, slice], None], shares: list[slice]) -> None:
    """Do the work of every share, each in a thread: the kernels release Python's lock."""
    others = [_threads().submit(work, number, shares[number]) for number in range(1, len(shares))]
    work(0, shares[0])
    for one in others:
        one.result()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="quantail-kernels")


def _call(kernel: Any, *arguments: Any) -> None:
    """Call a kernel, which compiles it if this is its first call on this machine."""
    if not kernel.overloads:  # the first call in this process
        announce(kernel)
    kernel(*arguments)


def _sizes(taus: Tensor, slope: Tensor, last: Tensor) -> tuple[int, ...]:
    """Return B, T, d, n, H and A."""
    (batch, count), (features, size), (actions, units) = taus.shape, slope.shape, last.shape
    return batch, count, features, size, units, actions


def _lanes(bias: Tensor) -> int:
    """Return the lanes of the vectors: eight of them are a share of the hidden units."""
    return 16 if WIDEST == 16 and bias.shape[0] % 128 == 0 else 8


def _require(tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Raise an error for a tensor that is not as a kernel reads its memory, which checks nothing."""
    if tensor.dtype != torch.float32 or tensor.shape != shape:
        raise TypeError(f"a kernel takes float32 of shape {shape}, not {tensor.dtype} of {tensor.shape}")


def _empty(*shape: int) -> Tensor:
    """Return a tensor as a kernel writes it, whatever torch's default dtype and device are."""
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def _zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float32, device="cpu")


def _stored(tensor: Tensor) -> Tensor:
    """Return the tensor as it is if its memory is in the order of its shape, or else a copy."""
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def _addresses(*tensors: Tensor) -> tuple[int, ...]:
    """Return where the elements of contiguous tensors begin; the caller holds the tensors meanwhile."""
    return tuple([tensor.data_ptr() for tensor in tensors])


def rectified_convolution(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ReLU(conv(images) + bias), flat: images [B, C, h, w], kernels of 3×3 -> [B, d].

    Images and kernels are copied at every call, unless they are stored with the channels of the images
    and the filters of the kernels last.
    """
    _require(images, (images.shape[0], weight.shape[1], *images.shape[2:]))
    _require(weight, (FILTERS, weight.shape[1], SIDE, SIDE))
    _require(bias, (FILTERS,))
    images = _stored(images.movedim(1, -1))
    if torch.is_grad_enabled() and weight.requires_grad:
        features: Tensor = _Convolution.apply(images, weight, bias)
        return features
    return _convolved(images, weight, bias)


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        features = _convolved(images, weight, bias)
        ctx.save_for_backward(images, weight, features)
        return features

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_features: Tensor) -> tuple[Tensor | None, ...]:
        images, weight, features = ctx.saved_tensors
        filters, channels = weight.shape[:2]
        of_kernels, of_bias = _zeros(channels, SIDE, SIDE, filters), _zeros(filters)
        of_features = _stored(of_features)  # a copy must live as long as its address is used
        _call(
            convolution_gradients,
            _addresses(images, features, of_features, of_kernels, of_bias),
            tuple(images.shape),
        )
        return None, of_kernels.movedim(-1, 0), of_bias


def _convolved(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    batch, height, width, _ = images.shape
    features = _empty(batch, bias.shape[0] * (height - SIDE + 1) * (width - SIDE + 1))
    kernels = _stored(weight.movedim(0, -1))  # filters last
    _call(convolve, _addresses(images, kernels, bias, features), tuple(images.shape))
    return features


def quantile_huber_slopes(
    predictions: Tensor, taus: Tensor, targets: Tensor, probabilities: Tensor, kappa: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the quantile Huber losses [B], and their slopes with the predictions and τ, [B, N]."""
    (batch, count), others = predictions.shape, targets.shape[1]
    given = [predictions, taus, targets, probabilities.expand(batch, others)]
    for tensor, columns in zip(given, (count, count, others, others), strict=True):
        _require(tensor, (batch, columns))
    given = [_stored(one) for one in given]
    losses, of_predictions, of_taus = _empty(batch), _empty(batch, count), _empty(batch, count)
    _call(
        quantile_huber,
        _addresses(*given, losses, of_predictions, of_taus),
        (batch, count, others),
        float(kappa),
    )
    return losses, of_predictions, of_taus
