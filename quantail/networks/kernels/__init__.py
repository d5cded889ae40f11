"""Compiled kernels for small networks on a CPU: an extra, with torch as the reference and the fallback.

Numba compiles them once per machine and keeps the result in its cache. They run on one thread. A head
or torso that has kernels imports them with `load_kernels`, and uses torch where that returns None.
"""

import sys
from functools import cache
from importlib import import_module, util
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def applies(tensor: Tensor) -> bool:
    """Return whether compiled kernels can work on a tensor: on the CPU, in float32 where it is float."""
    is_plain = not tensor.is_floating_point() or tensor.dtype == torch.float32
    return tensor.device.type == "cpu" and is_plain and not torch.is_autocast_enabled("cpu")


@cache
def load_kernels() -> Any:
    """Return the module of the compiled functions, or None where numba is missing or does not work."""
    if util.find_spec("numba") is None:
        return None
    try:
        return import_module("quantail.networks.kernels.functions")
    except Exception as error:  # a numba that does not fit numpy, or a disk without room for its cache
        print(f"quantail: the compiled kernels cannot be used, so torch is ({error}).", file=sys.stderr)
        return None


def announce(kernel: Any) -> None:
    """Say, once in a process, that a kernel will be compiled, unless numba has it in its cache."""
    source, folder = Path(kernel.py_func.__code__.co_filename), Path(kernel.stats.cache_path)
    saved = folder.glob(f"{source.stem}.{kernel.py_func.__qualname__}-*.nbi")
    if not any(path.stat().st_mtime > source.stat().st_mtime for path in saved):
        _announce_once()


@cache
def _announce_once() -> None:
    print("quantail: compiling kernels, about 10 s, once on this machine", file=sys.stderr)
