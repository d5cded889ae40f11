"""Benchmarks of Quantail on this machine. Each one is timed in alternation with a bound."""

from quantail.bench.measure import Row
from quantail.bench.suite import BENCHES, run_benches

__all__ = ["BENCHES", "Row", "run_benches"]
