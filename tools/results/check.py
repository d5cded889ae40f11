"""Which rows are stale: the present code learns something else than the code that made them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version

from quantail.text import counted
from tools import bits
from tools.results.plan import Spec
from tools.results.site import Site, git
from tools.results.table import RunRow

# Returns {"digest": …, "kernels": …} of a run's agent, preset and game at a commit, or at the present
# code if the commit is "".
Fingerprints = Callable[[Spec, str, str], bits.Fingerprint]


@dataclass(frozen=True)
class Verdict:
    """What is known about a row."""

    stale: bool = False
    unknown: str = ""  # why it cannot be said whether the row is stale


class Checker:
    """Compares rows with the present code, each kind of run once."""

    def __init__(self, fingerprints: Fingerprints) -> None:
        self._fingerprints = fingerprints
        self._known: dict[tuple[str, ...], bits.Fingerprint | str] = {}
        self._here = (bits.processor(), version("torch"))

    def verdict(self, row: RunRow) -> Verdict:
        """Compare a row with the present code.

        Its fingerprint counts only on the processor and with the torch that it was made with. For a
        row from elsewhere, both fingerprints are computed here, at its commit and at the present one.
        """
        present = self._find(row, "")
        if isinstance(present, str):
            return Verdict(unknown=present)
        if (row.processor, row.torch) == self._here:
            return Verdict(stale=row.fingerprint != present.digest)
        before = self._find(row, row.commit)
        if isinstance(before, str):
            return Verdict(unknown=before)
        return Verdict(stale=before.digest != present.digest)

    def _find(self, row: RunRow, commit: str) -> bits.Fingerprint | str:
        """Return the fingerprint with the row's kernels, or a sentence that says why there is none."""
        key = (row.agent, row.preset, row.game, row.kernels, commit)
        if key not in self._known:
            try:
                found: bits.Fingerprint | str = self._fingerprints(row.spec, commit, row.kernels)
            except bits.BitsError as error:
                found = str(error)
            self._known[key] = found
        found = self._known[key]
        if isinstance(found, bits.Fingerprint) and found.kernels != row.kernels:
            return f"its kernels are {row.kernels}, and here {found.kernels} would be used"
        return found


def fingerprints_here(site: Site) -> Fingerprints:
    """Return a function that computes fingerprints in this process; the present code is the clone's."""
    changed = git(site.home, "status", "--porcelain", "--", "quantail")
    present = bits.Version("the working tree", bits.ROOT) if changed else bits.checkout("HEAD")

    def find(spec: Spec, commit: str, kernels: str) -> bits.Fingerprint:
        code = bits.checkout(commit) if commit else present
        return bits.fingerprint_of(code, spec.agent, spec.preset, spec.env, kernels)

    return find


def check(rows: Iterable[RunRow], fingerprints: Fingerprints) -> int:
    """Print every row that is stale, and every row of which that is unknown; 1 if there are any."""
    checker, counts = Checker(fingerprints), {"current": 0, "stale": 0, "unknown": 0}
    for row in rows:
        verdict = checker.verdict(row)
        kind = "stale" if verdict.stale else "unknown" if verdict.unknown else "current"
        counts[kind] += 1
        if kind != "current":
            where = f"{row.id}  {row.spec.label}, {row.study}, commit {row.commit[:7]}"
            print(f"{kind:<8} {where}{': ' + verdict.unknown if verdict.unknown else ''}", flush=True)
    print(
        f"{counted(sum(counts.values()), 'row')}: {counts['current']} current, {counts['stale']} stale, "
        f"{counts['unknown']} that cannot be compared here."
    )
    return 1 if counts["stale"] else 0
