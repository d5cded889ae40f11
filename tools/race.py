"""Race two versions of the code: the time of a cycle of training, taken in turns.

    make race BASE=<commit>                        the working tree against a commit
    make race BASE=<commit> ROWS="minatar small"   presets to race [small minatar]
    make race BASE=<commit> RUN=<folder>           with the settings and the weights of a run
    python tools/race.py --help                    more: other agents, settings, environments

A cycle is as many steps as a run has between two updates (acting, playing, storing), and one update
(sampling, learning, priorities), of the real trainer, on one thread. Each version works in a process of
its own, from a folder of its own (PYTHONPATH), and only one of them works at a time: in every round both
run the same number of cycles, one after the other, because the speed of a machine drifts within minutes.

The ratio is the base's time over the other's, so 2 means twice as fast as the base. It is a median over
rounds, with its 95 % confidence interval. `wall` is the time on the clock. `cpu` is that of the thread,
which other work on the machine disturbs less; the phases below it are its parts.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bits import ROOT, BitsError, Version, checkout

WORKER = Path(__file__).with_name("race_worker.py")
ROWS = {  # presets, and the environment that each is raced on
    "small": "CartPole-v1",
    "minatar": "MinAtar/Breakout-v1",
    "atari-paper": "ALE/Breakout-v5",
    "atari-fast": "ALE/Breakout-v5",
}
DEFAULT = ("small", "minatar")
TURN = 0.2  # seconds of a turn, about
LEAST = 10  # rounds
CONFIDENCE = 0.95


class Side:
    """A version in a process of its own, which works only while it is asked to."""

    def __init__(self, version: Version, job: dict[str, Any], scratch: Path) -> None:
        self.version = version
        self.errors = scratch / f"{id(self)}.txt"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(WORKER)],
                env=version.environment,
                cwd=scratch,  # so that no folder shadows the version's code
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
            )
        self.about = self._ask(job | {"folder": str(version.folder)})

    def turn(self, cycles: int) -> dict[str, float]:
        """Run some cycles and return the milliseconds of one, for an update."""
        spent = self._ask({"cycles": cycles})
        count = cycles * self.about["updates"]
        return {name: 1000 * seconds / count for name, seconds in spent.items()}

    def end(self) -> dict[str, Any]:
        """Return what the version says at its end."""
        return self._ask({})

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        line = ""
        try:
            print(json.dumps(question), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            pass
        if not line:
            said = self.errors.read_text().strip().splitlines()[-1:] or ["it said nothing"]
            raise SystemExit(f"race: {self.version.label} has failed: {said[0]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise SystemExit(f"race: {self.version.label} {answer['error']}")
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def sides_of(versions: Sequence[Version], jobs: Sequence[dict[str, Any]]) -> Iterator[list[Side]]:
    """Start the two versions, one after the other."""
    sides: list[Side] = []
    with tempfile.TemporaryDirectory() as scratch:
        try:
            for version, job in zip(versions, jobs, strict=True):
                sides.append(Side(version, job, Path(scratch)))
            yield sides
        finally:
            for side in sides:
                side.close()


def race(sides: Sequence[Side], seconds: float) -> tuple[int, list[list[dict[str, float]]]]:
    """Let both sides work in turn; return the cycles of a turn, and the times of each side's turns.

    Which of them begins changes from round to round.
    """
    cycles = max(1, math.ceil(TURN / max(side.about["seconds"] for side in sides)))
    found: list[list[dict[str, float]]] = [[], []]
    for side in sides:
        side.turn(cycles)  # discarded
    end = time.perf_counter() + seconds
    while len(found[0]) < LEAST or time.perf_counter() < end:
        order = (0, 1) if len(found[0]) % 2 == 0 else (1, 0)
        for index in order:
            found[index].append(sides[index].turn(cycles))
    return cycles, found


@dataclass(frozen=True)
class Ratio:
    """How many times as fast as the base the other version is, with its confidence interval."""

    name: str
    base_ms: float
    other_ms: float
    ratio: float
    low: float
    high: float


def ratio_of(name: str, base: Sequence[float], other: Sequence[float]) -> Ratio:
    """Compare the times of the same rounds."""
    ratios = sorted(b / o for b, o in zip(base, other, strict=True))
    low, high = median_interval(len(ratios))
    return Ratio(
        name,
        statistics.median(base),
        statistics.median(other),
        statistics.median(ratios),
        ratios[low],
        ratios[high],
    )


def median_interval(count: int) -> tuple[int, int]:
    """Return the indices, in sorted values, between which the median lies with 95 % confidence.

    The number of values below the median is binomial with probability 1/2, whatever their distribution.
    """
    outside, index = 0.0, 0
    while index < count // 2:
        outside += math.comb(count, index) / 2**count
        if 2 * outside > 1 - CONFIDENCE:
            break
        index += 1
    index = max(index - 1, 0)
    return index, count - 1 - index


def compared(found: list[list[dict[str, float]]]) -> list[Ratio]:
    """Compare what both versions measured: whole cycles, then their phases."""
    shared = [name for name in found[0][0] if all(name in turn for turns in found for turn in turns)]
    return [ratio_of(name, *([turn[name] for turn in turns] for turns in found)) for name in shared]


# What is raced


def version_of(text: str) -> Version:
    """The version in a folder, such as a working tree, or that of a commit."""
    folder = Path(text).resolve()
    if (folder / "quantail" / "__init__.py").exists():
        return Version("the working tree" if folder == ROOT else text, folder)
    try:
        return checkout(text)
    except BitsError as error:
        raise SystemExit(f"race: {error}") from error


@dataclass(frozen=True)
class Row:
    """One job that both versions do."""

    name: str
    job: dict[str, Any]


def row_of(preset: str, agent: str, env: str) -> Row:
    """The row of a preset, with the fresh weights of a new run."""
    if preset not in ROWS:
        raise SystemExit(f"race: rows are {', '.join(ROWS)}, not {preset!r}.")
    env = env or ROWS[preset]
    job = {"env": env, "agent": agent, "preset": preset, "settings": {}, "weights": ""}
    return Row(f"{preset} {agent}", job)


def row_of_run(run: Path) -> Row:
    """The row of a run: its settings, and the weights of its last checkpoint."""
    try:
        about = json.loads((run / "run.json").read_text(encoding="utf-8"))
        last = (run / "checkpoints" / "last").read_text(encoding="utf-8").strip()
        settings = about["settings"]
        name = f"{settings['preset']} {settings['agent']} at step {int(last):,}"
        job = {"env": about["env"], "settings": settings}
    except (OSError, ValueError, KeyError) as error:
        raise SystemExit(f"race: {run} is not a run with a checkpoint ({error}).") from error
    weights = run.resolve() / "checkpoints" / last / "agent.safetensors"
    return Row(name, job | {"weights": str(weights)})


def changes_of(words: Sequence[str]) -> dict[str, str]:
    """Return the settings that NAME=VALUE words give."""
    changes = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise SystemExit(f"race: a setting is given as NAME=VALUE, not as {word!r}.")
        changes[name.replace("-", "_")] = value
    return changes


def race_row(row: Row, versions: Sequence[Version], asked: argparse.Namespace) -> dict[str, Any]:
    """Race one row, print it and return it as data."""
    both, here = changes_of(asked.set), changes_of(asked.set_other)
    jobs = [row.job | {"changes": both}, row.job | {"changes": both | here}]
    with sides_of(versions, jobs) as sides:
        about = [side.about for side in sides]
        cycles, found = race(sides, asked.seconds)
        after = [side.end()["zeros"] for side in sides]
    ratios = compared(found)
    steps = [one["steps"] for one in about]
    words = [row.name, *asked.set, *(f"{word} on one side" for word in asked.set_other)]
    print(f"\n{', '.join(words)}: {about[0]['env']}, {steps[0]:g} steps and 1 update a cycle")
    print(f"  {len(found[0])} rounds of {cycles} cycles; features that are zero: ", end="")
    print(f"{about[0]['zeros']:.0%}, {after[0]:.0%} and {after[1]:.0%} at the end")
    print(f"  {'ms a cycle':<14}{'base':>9}{'other':>9}   times as fast")
    for one in ratios:
        times = f"{one.base_ms:>9.3f}{one.other_ms:>9.3f}"
        print(f"  {one.name:<14}{times}   {one.ratio:.3f}  ({one.low:.3f} to {one.high:.3f})")
    for one in ratios[:2]:
        rates = [1000 * steps[0] / one.base_ms, 1000 * steps[1] / one.other_ms]
        print(f"  {'steps/s ' + one.name:<14}{rates[0]:>9.0f}{rates[1]:>9.0f}", flush=True)
    return {
        "row": row.name,
        "settings": both,
        "other_settings": here,
        "about": about,
        "rounds": len(found[0]),
        "cycles": cycles,
        "ratios": [vars(one) for one in ratios],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("base", metavar="BASE", help="the commit, or a folder, to race against")
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"presets: {', '.join(ROWS)} [{' '.join(DEFAULT)}]"
    )
    parser.add_argument(
        "--other", metavar="COMMIT", default=str(ROOT), help="race this, or a folder [the working tree]"
    )
    parser.add_argument("--agent", nargs="+", default=["iqn"], help="agents to race [iqn]")
    parser.add_argument("--env", default="", help="another environment for the presets")
    parser.add_argument("--checkpoint", metavar="RUN", type=Path, help="race a trained network")
    parser.add_argument(
        *("--set", "-s"), action="append", default=[], metavar="NAME=VALUE", help="a setting of both"
    )
    parser.add_argument(
        *("--set-other", "-o"),
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the version that is not the base",
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="time for each row [30]")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the figures to this file")
    asked = parser.parse_args()
    if asked.checkpoint and (asked.rows or asked.env or asked.agent != ["iqn"]):
        parser.error("a run has its own preset, agent and environment: give --checkpoint alone.")
    if asked.checkpoint:
        rows = [row_of_run(asked.checkpoint)]
    else:
        presets = asked.rows or DEFAULT
        rows = [row_of(preset, agent, asked.env) for preset in presets for agent in asked.agent]
    changes_of([*asked.set, *asked.set_other])
    versions = [version_of(asked.base), version_of(asked.other)]
    base, other = (version.label for version in versions)
    print(f"base: {base}; other: {other}; one thread", flush=True)
    found = []
    for row in rows:
        found.append(race_row(row, versions, asked))
        if asked.json:
            about = {"base": base, "other": other, "rows": found}
            asked.json.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
