"""Process-wide settings of a run, in force while it runs and restored afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def process_settings(threads: int, precision: str) -> Iterator[None]:
    """Use this number of threads and this precision of matrix products, then restore the caller's."""
    with num_threads(threads), _matmul_precision("high" if precision == "tf32" else "highest"):
        yield


@contextmanager
def num_threads(threads: int) -> Iterator[None]:
    """Use this number of CPU threads in torch, then restore the caller's."""
    before = torch.get_num_threads()
    try:
        if threads != before:
            torch.set_num_threads(threads)
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


@contextmanager
def _matmul_precision(wanted: str) -> Iterator[None]:
    """Use this precision of float32 matrix products, then restore the caller's.

    torch keeps it in two places: one name for all backends, and a precision for each backend. Setting
    the name also sets the backends, so these are restored after it.
    """
    backends = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)  # type: ignore[attr-defined]
    before = [backend.fp32_precision for backend in backends]
    try:
        name = torch.get_float32_matmul_precision()
    except RuntimeError:  # the caller has set one backend, so that no single name describes all
        name = "highest"
    torch.set_float32_matmul_precision(wanted)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(name)
        for backend, precision in zip(backends, before, strict=True):
            backend.fp32_precision = precision
