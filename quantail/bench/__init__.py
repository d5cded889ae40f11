"""What this machine does, each figure beside its bound measured in turn with it."""

from quantail.bench.measure import Row
from quantail.bench.suite import BENCHES, run_benches

__all__ = ["BENCHES", "Row", "run_benches"]
