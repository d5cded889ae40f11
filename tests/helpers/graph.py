"""Walk over everything that an object holds."""

import hashlib
import re
import types
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

# Code and values that cannot change.
SKIPPED = (type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType, Path)


def values_of(root, skip=()):
    """Return every value that an object holds, directly or through others, by its path.

    Paths that match one of the patterns `skip` are not followed.
    """
    found, seen = {}, set()

    def walk(path, one):
        if any(re.search(pattern, path) for pattern in skip):
            return
        if one is None or isinstance(one, (bool, int, float, str, bytes, np.generic)):
            found[path] = repr(one)
            return
        if id(one) in seen or isinstance(one, SKIPPED):
            return
        seen.add(id(one))
        kept.append(one)  # so that no id is used twice
        if isinstance(one, torch.Tensor):
            array = one.detach().cpu().contiguous()
            found[path] = f"{array.dtype} {tuple(array.shape)} {_digest(array.numpy())}"
        elif isinstance(one, np.ndarray):
            found[path] = f"{one.dtype} {one.shape} {_digest(one)}"
        elif isinstance(one, np.random.Generator):
            found[path] = repr(one.bit_generator.state)
        elif isinstance(one, Mapping):
            for position, (key, value) in enumerate(one.items()):
                name = key if isinstance(key, str | int) else position
                walk(f"{path}[{name}]", value)
        elif isinstance(one, (list, tuple, deque)):
            found[f"{path}.len"] = repr(len(one))
            for position, value in enumerate(one):
                walk(f"{path}[{position}]", value)
        elif isinstance(one, (set, frozenset)):
            found[path] = repr(sorted(map(str, one)))
        else:
            for name, value in sorted(_attributes(one).items()):
                walk(f"{path}.{name}", value)

    kept = []
    walk("", root)
    return found


def _attributes(one):
    slots = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
    known = {name: getattr(one, name) for name in slots if hasattr(one, name)}
    return known | getattr(one, "__dict__", {})


def _digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
