"""The list of benchmarks, and a description of the machine."""

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from quantail.bench import act, cycle, end_to_end, learner, replay, watch
from quantail.bench.measure import Row

Bench = Callable[[float], Iterator[Row]]
BENCHES: dict[str, Bench] = {
    "learner": learner.rows,
    "act": act.rows,
    "replay": replay.rows,
    "end-to-end": end_to_end.rows,
    "cycle": cycle.rows,
    "watch": watch.rows,
}


def run_benches(
    names: Sequence[str], seconds: float, benches: Mapping[str, Bench] = BENCHES
) -> Iterator[Row]:
    """Run the named benchmarks, each row for about `seconds`."""
    for name in names:
        yield from benches[name](seconds)


def machine() -> dict[str, Any]:
    """Return the hardware and the versions that the times depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "quantail": version("quantail"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
