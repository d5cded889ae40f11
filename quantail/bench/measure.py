"""Time two functions in alternation, because the speed of a machine drifts within minutes."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

WARM_UP = 3  # rounds that are discarded
LEAST = 7  # minimum number of rounds that count


@dataclass(frozen=True)
class Row:
    """One measurement. The ratio is the bound's time over ours, so 1 means as fast as the bound."""

    bench: str
    setting: str
    median_ms: float
    best_ms: float
    bound_ms: float
    ratio: float
    more: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        times = {"median_ms": self.median_ms, "best_ms": self.best_ms, "bound_ms": self.bound_ms}
        rounded = {name: round(value, 4) for name, value in times.items()}
        named = {"bench": self.bench, "setting": self.setting}
        return named | rounded | {"ratio": round(self.ratio, 3)} | self.more


def race(
    bench: str,
    setting: str,
    work: Callable[[], object],
    bound: Callable[[], object],
    seconds: float,
    scale: float = 1.0,
    **more: Any,
) -> Row:
    """Time `work` and its bound in alternation for `seconds`; divide the times by `scale`.

    The ratio is the median over rounds of bound time / work time, so drift cancels.
    """
    ours: list[float] = []
    theirs: list[float] = []
    end = time.perf_counter() + seconds
    while len(ours) < LEAST + WARM_UP or time.perf_counter() < end:
        ours.append(_milliseconds(work) / scale)
        theirs.append(_milliseconds(bound) / scale)
    ours, theirs = ours[WARM_UP:], theirs[WARM_UP:]
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    median, bound_ms = statistics.median(ours), statistics.median(theirs)
    return Row(bench, setting, median, min(ours), bound_ms, ratio, more)


def _milliseconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begin)
