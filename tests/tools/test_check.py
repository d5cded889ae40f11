"""Which rows are stale: what is compared with what."""

from importlib.metadata import version

import pytest

from tests.tools.rows import finished
from tests.tools.test_table import spec
from tools import bits
from tools.results.check import Checker, Verdict

HERE = {"processor": bits.processor(), "torch": version("torch")}


def verdict(known, **changes):
    """Return the verdict on a row, given the fingerprints that can be computed by their commits."""

    def find(_spec, commit, kernels):
        if commit not in known:
            raise bits.BitsError("it cannot train.")
        return bits.Fingerprint(known[commit], "torch" if kernels == "torch" else available)

    available = changes.pop("available", "numba")
    row, _ = finished(spec(0), commit="old", fingerprint="a", **{**HERE, **changes})
    return Checker(find).verdict(row)


def test_on_the_same_machine_the_fingerprint_of_the_row_counts():
    assert verdict({"": "a"}) == Verdict()
    assert verdict({"": "b"}) == Verdict(stale=True)


@pytest.mark.parametrize("elsewhere", [{"processor": "another"}, {"torch": "1.0"}])
def test_for_a_row_from_elsewhere_both_are_computed_here(elsewhere):
    assert verdict({"": "b", "old": "b"}, **elsewhere) == Verdict()
    assert verdict({"": "b", "old": "a"}, **elsewhere) == Verdict(stale=True)
    assert verdict({"": "b"}, **elsewhere) == Verdict(unknown="it cannot train.")


def test_a_row_is_compared_only_under_its_own_kernels():
    assert verdict({"": "a"}, kernels="torch") == Verdict()
    assert verdict({"": "a"}, kernels="numba") == Verdict()
    found = verdict({"": "a"}, kernels="numba", available="torch")
    assert found == Verdict(unknown="its kernels are numba, and here torch would be used")
