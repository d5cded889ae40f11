"""Use Quantail from Python in a fresh process, and print as JSON what that changed in the process.

`python -m tests.helpers.process_state FOLDER` prints, for each call, the names of what it changed, and
what was in force while the runs ran.
"""

import ctypes
import gc
import json
import logging
import os
import random
import signal
import sys
import warnings
from pathlib import Path

# What dependencies do when they are imported is theirs: rich draws a random number, for example.
import ale_py  # noqa: F401
import gymnasium as gym
import numpy as np
import pytest
import rich.console  # noqa: F401
import torch
import torch._dynamo

TINY = {
    "learning_starts": 60,
    "buffer_size": 150,
    "evaluation_every": 100,
    "evaluation_episodes": 2,
    "checkpoint_every": 50,
    "batch_size": 8,
    "head_size": 16,
    "mlp_sizes": [16],
    "steps": 100,
}


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks")]
    _fields_ += [("rest", ctypes.c_size_t * 6)]


def keeps_large_blocks():
    """Return whether a block of 64 MB comes from the heap; by default glibc maps one."""
    libc = ctypes.CDLL("libc.so.6")
    libc.mallinfo2.restype, libc.malloc.restype = _Mallinfo, ctypes.c_void_p
    libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
    before = libc.mallinfo2().hblks
    block = libc.malloc(1 << 26)
    mapped = libc.mallinfo2().hblks > before
    libc.free(block)
    return not mapped


def state():
    """Return the process-wide state that a library could change."""
    matmul = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)
    return {
        "threads": torch.get_num_threads(),
        "interop threads": torch.get_num_interop_threads(),
        "matmul precision": torch.get_float32_matmul_precision(),
        "backends' precision": [one.fp32_precision for one in matmul],
        "dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "dynamo's flag": torch._dynamo.config.suppress_errors,
        "torch's generator": torch.get_rng_state().tolist(),
        "seeds of GPUs": list(map(str, torch.cuda._lazy_seed_tracker.get_calls())),
        "numpy's generator": str(np.random.get_state()),
        "numpy's errors": np.geterr(),
        "Python's generator": random.getstate(),
        "environment variables": dict(os.environ),
        "signal handlers": {n: signal.getsignal(n) for n in signal.valid_signals()},
        "warning filters": list(warnings.filters),
        "showwarning": warnings.showwarning,
        "hooks": (sys.excepthook, sys.displayhook, sys.gettrace(), sys.getprofile()),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "search path": list(sys.path),
        "working folder": os.getcwd(),
        "recursion limit": sys.getrecursionlimit(),
        "garbage collector": (gc.get_threshold(), gc.isenabled()),
        "logging": (logging.root.level, list(logging.root.handlers), logging.root.manager.disable),
        "allocator": keeps_large_blocks(),
    }


class FailingCartPole(gym.Wrapper):
    """CartPole that raises an error after 80 steps."""

    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))
        self.steps = 0

    def step(self, action):
        self.steps += 1
        if self.steps > 80:
            raise RuntimeError("out of order")
        return super().step(action)


def main(folder):
    torch.set_num_threads(3)  # nothing here is as by default, so that what is restored is the caller's
    torch.set_float32_matmul_precision("medium")
    signal.signal(signal.SIGTERM, lambda *_: None)
    changes, in_force = {}, {}

    def note(name, call):
        before = state()
        value = call()
        after = state()
        changes[name] = [key for key in before if before[key] != after[key]]
        return value

    def use():
        import quantail

        for name in quantail.__all__:  # imports all public modules
            getattr(quantail, name)
        return quantail

    quantail = note("import", use)

    class Noting(quantail.Callback):
        def __init__(self, name):
            self.name = name

        def on_step(self, progress):
            in_force[self.name] = [torch.get_num_threads(), torch.get_float32_matmul_precision()]

    def train(name, env="CartPole-v1", **settings):
        out = folder / name
        return quantail.train(env, out=out, callbacks=[Noting(name)], **TINY | settings)

    def fail():
        with pytest.raises(quantail.QuantailError, match="out of order"):
            train("fails", FailingCartPole, threads=2)

    note("train", lambda: train("default"))
    note("train with threads and tf32", lambda: train("chosen", threads=2, precision="tf32"))
    note("train with torch's threads", lambda: train("torch", threads=0))
    note("a run that raises", fail)
    agent = note("load", lambda: quantail.load(folder / "chosen"))
    observation = np.zeros(4, np.float32)
    note("act", lambda: agent.act(observation))
    note("predict", lambda: agent.predict(observation, deterministic=False))
    note("evaluate", lambda: quantail.evaluate(agent, episodes=2))
    longer = {"steps": 120, "callbacks": [Noting("resumed")]}
    note("resume", lambda: quantail.resume(folder / "chosen", **longer))
    print(json.dumps({"changes": changes, "in_force": in_force}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
