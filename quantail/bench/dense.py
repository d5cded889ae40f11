"""The matrix products and convolutions of some work, with nothing between them: its bound."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Work = Callable[[], object]
aten = torch.ops.aten
PRODUCTS = {
    aten.mm.default,
    aten.addmm.default,
    aten.bmm.default,
    aten.baddbmm.default,
    aten.convolution.default,
    aten.convolution_backward.default,
}


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records every product, whatever part of a network asks for it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products: list[Work] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in PRODUCTS:
            self.products.append(_again(func, args))
        return func(*args, **(kwargs or {}))


def products_of(work: Work) -> Work:
    """Return what repeats the products of some work, on random numbers of the same shapes."""
    with _Recorder() as recorder:
        work()

    def repeat() -> None:
        with torch.no_grad():
            for product in recorder.products:
                product()

    return repeat


def _again(func: Any, args: tuple[Any, ...]) -> Work:
    inputs = [torch.randn_like(one) if isinstance(one, Tensor) else one for one in args]
    if func is aten.addmm.default:
        func, inputs = aten.mm.default, inputs[1:3]
    return lambda: func(*inputs)
